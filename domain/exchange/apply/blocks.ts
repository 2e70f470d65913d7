/** Applies rows about blocks, and stores the facts of recent blocks. */
import { invariant } from '../../invariant.ts'
import type {
  BlockAdvanced,
  BlockBegun,
  BlockCompleted,
  BlockLeaving,
  BlockLeft,
  BlocksConfirmed,
  ChainHalted,
  ChainRow,
  TransactionSigned,
  TransactionsReleased,
} from '../../journal/chain-rows.ts'
import type { JournalRow } from '../../journal/journal-row.ts'
import type { MarketId } from '../../units.ts'
import type { ExchangeState } from '../state.ts'
import {
  type BlockRow,
  CHAIN,
  type ChainPosition,
  keyOfFact,
  keyOfTransaction,
  type MinedRow,
} from '../tables/blocks.ts'

type Handlers = {
  readonly [Kind in ChainRow['kind']]: (
    state: ExchangeState,
    row: Extract<ChainRow, { readonly kind: Kind }>,
  ) => void
}

const HANDLERS: Handlers = {
  block_begun: beginBlock,
  block_advanced: (state, { number, next_log }: BlockAdvanced) => changeBlock(state, number, { next_log }),
  block_completed(state, { number }: BlockCompleted): void {
    // Equal states, independent of the slices.
    changeBlock(state, number, { status: 'complete', next_log: 0 })
    changeChain(state, { next_block: number + 1 })
  },
  block_leaving: (state, { number }: BlockLeaving) => changeBlock(state, number, { status: 'leaving' }),
  block_left(state, { number, next_block }: BlockLeft): void {
    state.blocks.remove(String(number))
    const { confirmed_to } = state.chain.need(CHAIN)
    changeChain(state, { next_block, confirmed_to: Math.min(confirmed_to, number - 1) })
  },
  blocks_confirmed: confirmBlocks,
  chain_halted: (state, { forked_at }: ChainHalted) => changeChain(state, { forked_at }),
  transaction_signed: (state, { relayer, nonce, attempt, tx_hash, purpose }: TransactionSigned) =>
    state.transactions.put({ relayer, nonce, attempt, tx_hash, purpose }),
  transactions_released(state, { relayer, below }: TransactionsReleased): void {
    for (const row of [...state.transactions.rows()])
      if (row.relayer === relayer && row.nonce < below) state.transactions.remove(keyOfTransaction(row))
  },
  log_undecodable: () => {},
  settlement_mismatched: () => {},
}

export function applyChainRow(state: ExchangeState, row: ChainRow): void {
  const handle = HANDLERS[row.kind] as ((state: ExchangeState, row: ChainRow) => void) | undefined
  invariant(handle !== undefined, `a row of the chain has a known kind, received ${row.kind}`)
  handle(state, row)
}

function beginBlock(state: ExchangeState, row: BlockBegun): void {
  const { number, from, hash, parent_hash, timestamp, is_empty, at } = row
  const status = is_empty ? 'complete' : 'open'
  state.blocks.put({ number, hash, parent_hash, timestamp, status, next_log: 0 })
  const before = state.chain.get(CHAIN)
  const first = { kept_from: from, confirmed_to: from - 1, forked_at: null }
  state.chain.put({ ...first, ...before, next_block: is_empty ? number + 1 : number, begun_at: at })
}

/** Confirms blocks, and drops blocks that are no longer kept. */
function confirmBlocks(state: ExchangeState, { up_to, kept_from }: BlocksConfirmed): void {
  for (const { number } of [...state.blocks.rows()]) {
    if (number >= kept_from) continue
    for (const fact of state.factsOfBlock.of(String(number))) state.blockFacts.remove(keyOfFact(fact))
    state.blocks.remove(String(number))
  }
  changeChain(state, { confirmed_to: up_to, kept_from })
}

function changeBlock(state: ExchangeState, number: number, fields: Partial<BlockRow>): void {
  state.blocks.put({ ...state.blocks.need(String(number)), ...fields })
}

function changeChain(state: ExchangeState, fields: Partial<ChainPosition>): void {
  state.chain.put({ ...state.chain.need(CHAIN), ...fields })
}

const isMinedRow = (row: JournalRow): row is MinedRow => 'log_index' in row && 'rollback' in row

/**
 * Stores a fact's row until its block is dropped; a rollback row removes it.
 * If one log has several rows, the last row states all of it. Rows of unknown blocks are from before the engine.
 */
export function followFact(state: ExchangeState, marketId: MarketId, row: JournalRow): void {
  if (!isMinedRow(row)) return
  const { block, log_index } = row
  if (row.rollback) state.blockFacts.remove(keyOfFact({ block, log_index }))
  else if (state.blocks.get(String(block)) !== undefined)
    state.blockFacts.put({ block, log_index, market_id: marketId, row })
}
