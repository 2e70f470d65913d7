/** External ports of the indexer. */
import type { Position } from '../domain/positions/position.ts'
import type { Address } from '../domain/units.ts'

export interface ChainBlock {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  /** Unix seconds. */
  readonly timestamp: number
  /** Hashes. */
  readonly transactions: readonly string[]
}

export interface ChainLog {
  readonly block: number
  readonly blockHash: string
  readonly logIndex: number
  readonly txHash: string
  /** Lower case, as everything here. */
  readonly address: Address
  readonly topics: readonly string[]
  readonly data: string
}

/** A node. Every call may fail at any time: it is slow, behind, away, or of another mind than a moment ago. */
export interface Chain {
  chainId(): Promise<number>
  /** The latest block. */
  head(): Promise<ChainBlock>
  block(number: number): Promise<ChainBlock | null>
  /** Logs of one block, whatever has become of its number. */
  logsOf(blockHash: string, addresses: readonly Address[]): Promise<ChainLog[]>
  /** Logs from a block to another, both included. */
  logsBetween(from: number, to: number, addresses: readonly Address[]): Promise<ChainLog[]>
  /** Whether a mined transaction did not revert; null where the node does not know it. */
  hasSucceeded(txHash: string): Promise<boolean | null>
  /** An account's position in a market after a block, straight from the contract. */
  position(trader: Address, account: Address, block: number): Promise<Position>
}

export interface Metrics {
  /** A pass that reached the chain's head. */
  headReached(head: number): void
  blockApplied(facts: number): void
  rolledBack(blocks: number): void
  mismatch(kind: string): void
  /** A chunk with rows. */
  projected(shards: readonly { readonly shard: string; readonly rows: number }[], seconds: number): void
  failed(job: 'follow' | 'project'): void
  /** System time less database time. */
  clockSkew(seconds: number): void
}
