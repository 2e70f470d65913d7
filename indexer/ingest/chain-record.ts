/** Where the follower records the blocks that it has fetched: in the tables of the write side, or through the engine. */
import type { Genesis, Progress, StoredBlock } from '../../db/chain.ts'
import type { Millis } from '../../domain/units.ts'
import type { ChainBlock, ChainLog } from '../ports.ts'
import type { SettlementMismatch } from './apply.ts'
import type { BlockFact } from './fact-locks.ts'

/** A block with its facts in the order of its logs. */
export interface BlockFacts {
  readonly block: ChainBlock
  readonly facts: readonly BlockFact[]
}

export interface NextBlock extends BlockFacts {
  /** The next block of the record; every block from here up to `block` is empty. */
  readonly from: number
  /** Mismatches without a fact. */
  readonly mismatches: readonly SettlementMismatch[]
}

export type RecordOutcome =
  | { readonly kind: 'recorded'; readonly mismatches: readonly SettlementMismatch[] }
  /** An empty block of which nothing is recorded: the next one states that it was empty. */
  | { readonly kind: 'skipped' }
  /** `overtaken`: another follower has moved the next block. `fork`: the block does not follow the recorded one. */
  | { readonly kind: 'overtaken' | 'fork' }

export interface ChainRecord {
  /** Binds the record to the chain at the first start. Throws OtherChainError for any other chain afterwards. */
  bind(genesis: Genesis, startBlock: number): Promise<void>
  progress(): Promise<Progress>
  /** The newest recorded block that is not above `number`. */
  blockAtOrBelow(number: number): Promise<StoredBlock | null>
  /** The block of which only a part is applied; null if there is none, or if it is to be fetched again. */
  openBlock(): Promise<{ readonly block: ChainBlock; readonly logs: readonly ChainLog[] } | null>
  /** Applies what is left of the open block. */
  finish(open: BlockFacts): Promise<RecordOutcome>
  ingest(next: NextBlock): Promise<RecordOutcome>
  /** Takes back the newest recorded block, if it is still this one. */
  rollBack(block: StoredBlock): Promise<void>
  /** Confirms blocks with enough blocks on top, below the node's head. */
  confirm(head: ChainBlock): Promise<void>
  /** The chain was followed up to the head at the time `at`. */
  complete(head: number, at: Millis): Promise<void>
}
