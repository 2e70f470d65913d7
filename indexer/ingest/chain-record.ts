/** Where the follower records the blocks that it has fetched. */
import type { Genesis, Progress, StoredBlock } from '../../db/chain.ts'
import type { ChainFact } from '../../domain/chain/facts.ts'
import type { FoundMismatch } from '../../domain/exchange/decide/chain/fact-context.ts'
import type { Millis } from '../../domain/units.ts'
import type { ChainBlock, ChainLog } from '../ports.ts'

/** The node's answers contradict each other, because it switched forks between two requests. The next pass starts over. */
export class InconsistentNodeError extends Error {
  override readonly name = 'InconsistentNodeError'
}

export interface BlockFact {
  readonly log: ChainLog
  readonly fact: ChainFact
}

export interface NextBlock {
  readonly block: ChainBlock
  /** In the order of their logs. */
  readonly facts: readonly BlockFact[]
  /** The next block of the record; every block from here up to `block` is empty. */
  readonly from: number
  /** Mismatches without a fact. */
  readonly mismatches: readonly FoundMismatch[]
}

export type RecordOutcome =
  | { readonly kind: 'recorded'; readonly mismatches: readonly FoundMismatch[] }
  /** An empty block that is not recorded: the next block states that it was empty. */
  | { readonly kind: 'skipped' }
  /** `overtaken`: another follower has moved the next block. `fork`: the block does not follow the recorded one. */
  | { readonly kind: 'overtaken' | 'fork' }

export interface ChainRecord {
  /** Binds the record to the chain at the first start. Throws OtherChainError for any other chain afterwards. */
  bind(genesis: Genesis, startBlock: number): Promise<void>
  progress(): Promise<Progress>
  /** The newest recorded block that is not above `number`. */
  blockAtOrBelow(number: number): Promise<StoredBlock | null>
  ingest(next: NextBlock): Promise<RecordOutcome>
  /** Rolls back this block if it is still the newest recorded block. */
  rollBack(block: StoredBlock): Promise<void>
  /** Confirms blocks with enough blocks on top, below the node's head. */
  confirm(head: ChainBlock): Promise<void>
  /** The chain was followed up to the head at the time `at`. */
  complete(head: number, at: Millis): Promise<void>
}
