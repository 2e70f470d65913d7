/** Rows of recent blocks and of their changes, with the data that a rollback needs. */
import type { JournalRow } from '../../journal/journal-row.ts'
import { DocumentGroups } from '../document-groups.ts'
import { DocumentTable } from '../document-table.ts'
import type { StateCore } from '../table.ts'

/** Position of the state on the chain. The table is empty before the first block. */
export interface ChainPosition {
  /** Next block to begin, if no block is open. */
  readonly next_block: number
  /** First block that can still be rolled back. */
  readonly kept_from: number
  readonly confirmed_to: number
  /** See `ChainHalted`. */
  readonly forked_at: number | null
  /** Time at which the last block was begun, in milliseconds. */
  readonly begun_at: number
}

/** `next_log` and `leaving` are set for a partly applied block. */
export interface BlockRow {
  readonly number: number
  readonly hash: string
  readonly parent_hash: string
  /** Unix seconds. */
  readonly timestamp: number
  readonly status: 'open' | 'complete' | 'leaving'
  readonly next_log: number
}

/** A journal row that states a fact of a block. Its rollback needs the row's amounts and prior values. */
export interface FactRow {
  readonly block: number
  readonly log_index: number
  readonly market_id: number
  readonly row: MinedRow
}

/** A row that states a fact of the chain. */
export type MinedRow = Extract<JournalRow, { readonly log_index: number; readonly rollback: boolean }>

/** An attempt to use a nonce. The worker stores its bytes. */
export interface TransactionRow {
  readonly relayer: string
  readonly nonce: number
  readonly attempt: number
  readonly tx_hash: string
  readonly purpose: string
}

export const keyOfTransaction = ({
  relayer,
  nonce,
  attempt,
}: Pick<TransactionRow, 'relayer' | 'nonce' | 'attempt'>): string => `${relayer}-${nonce}-${attempt}`

export const CHAIN = 'chain'
export const keyOfFact = ({ block, log_index }: Pick<FactRow, 'block' | 'log_index'>): string =>
  `${block}-${log_index}`

export const createBlockTables = (core: StateCore) => {
  const blocks = new DocumentTable<BlockRow>(core, {
    name: 'blocks',
    seed: 28,
    keyOf: ({ number }) => String(number),
  })
  const blockFacts = new DocumentTable<FactRow>(core, { name: 'block facts', seed: 29, keyOf: keyOfFact })
  return {
    chain: new DocumentTable<ChainPosition>(core, { name: 'chain', seed: 31, keyOf: () => CHAIN }),
    blocks,
    blockFacts,
    transactions: new DocumentTable<TransactionRow>(core, {
      name: 'transactions',
      seed: 30,
      keyOf: keyOfTransaction,
    }),
    factsOfBlock: new DocumentGroups(blockFacts, { keyOf: keyOfFact, groupOf: ({ block }) => String(block) }),
  }
}

export type BlockTables = ReturnType<typeof createBlockTables>
