/** Context in which the facts of one block are decided. */
import type { LoggedFact } from '../../../chain/facts.ts'
import type { Position } from '../../../positions/position.ts'
import type { Mismatch } from '../../../settlement/receipt.ts'
import type { MinedAt } from '../../../settlement/settle-part.ts'
import type { Address, MarketId, Millis, UserId } from '../../../units.ts'
import type { Draft } from '../../draft.ts'

/** A position on the contract after the block. */
export interface ReadPosition {
  readonly logIndex: number
  readonly account: Address
  readonly position: Position
}

/** The rules do not explain a fact; the positions of these accounts must be read at the block. */
export interface WantedPositions {
  readonly logIndex: number
  readonly marketId: MarketId
  readonly accounts: readonly Address[]
}

export interface FoundMismatch extends Mismatch {
  readonly marketId: number
  readonly txHash: string
  readonly batchId: number | null
  readonly part: number | null
}

export interface FactContext {
  readonly draft: Draft
  readonly block: { readonly number: number; readonly timestamp: number }
  /** All facts of the block. */
  readonly facts: readonly LoggedFact[]
  readonly positions: readonly ReadPosition[]
  /** Gas used by the exchange's own transactions in the block, by hash, as far as known. */
  readonly gasUsed: ReadonlyMap<string, number>
  readonly mismatches: FoundMismatch[]
}

export const blockTime = ({ block }: Pick<FactContext, 'block'>): Millis => (block.timestamp * 1000) as Millis

export const minedAt = (context: FactContext, { logIndex, txHash }: LoggedFact['log']): MinedAt => ({
  block: context.block.number,
  tx_hash: txHash,
  log_index: logIndex,
  at: blockTime(context),
})

/** User of the account, created at the start of the block. */
export const userOf = ({ draft }: Pick<FactContext, 'draft'>, account: Address): UserId =>
  draft.state.userIds.get(account) as UserId

/** Positions read for the fact; null if one is missing. */
export function readPositions(
  { positions }: FactContext,
  logIndex: number,
  accounts: readonly Address[],
): Map<Address, Position> | null {
  const own = new Map(
    positions
      .filter((read) => read.logIndex === logIndex)
      .map(({ account, position }) => [account, position]),
  )
  return accounts.every((account) => own.has(account)) ? own : null
}
