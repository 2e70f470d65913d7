/**
 * `apply` is the only code that changes a state. It applies the values that rows state and decides nothing.
 */
import { violated } from '../invariant.ts'
import type { AccountsRow } from '../journal/accounts-row.ts'
import type { ChainRow } from '../journal/chain-rows.ts'
import { ACCOUNTS_SHARD, CHAIN_SHARD, type JournalRow, type MarketRow } from '../journal/journal-row.ts'
import { unreadable } from '../journal/row-versions.ts'
import { type MarketId, maxOf, type Seq } from '../units.ts'
import { applyAccountsRow } from './apply/accounts.ts'
import { applyChainRow, followFact } from './apply/blocks.ts'
import { applyMarketRow } from './apply/markets.ts'
import type { ExchangeState, HeadRow } from './state.ts'

/** A row with its shard and its sequence in that shard's journal. */
export interface Entry {
  readonly shard: string
  readonly seq: number
  readonly row: JournalRow
}

/** Market id that stands for the chain shard. */
export const CHAIN = 0xffff_ffff as MarketId

/** Market id of a shard; 0 for the accounts. */
export function marketIdOf(shard: string): MarketId {
  if (shard === CHAIN_SHARD) return CHAIN
  return (shard === ACCOUNTS_SHARD ? 0 : Number(shard.slice(1))) as MarketId
}

/**
 * Applies the next row of its shard; rows of other shards that it needs were applied before. If `apply` throws, the
 * state may be partly changed, and the caller rolls back to its earlier mark.
 */
export function apply(state: ExchangeState, { shard, seq, row }: Entry): void {
  const marketId = marketIdOf(shard)
  const before = state.heads.get(marketId)
  const head = before?.seq ?? 0
  if (seq !== head + 1)
    throw violated(`the row after ${head} of ${shard} has the next sequence, received ${seq}`)
  const problem = unreadable(row)
  if (problem !== null) throw violated(problem)
  if (shard === ACCOUNTS_SHARD) applyAccountsRow(state, seq as Seq, row as AccountsRow)
  else if (shard === CHAIN_SHARD) applyChainRow(state, row as ChainRow)
  else applyMarketRow(state, { marketId, seq: seq as Seq }, row as MarketRow)
  followFact(state, marketId, row)
  state.heads.put({ marketId, seq: seq as Seq, releasedUpTo: releasedUpTo(before, row) })
}

function releasedUpTo(before: HeadRow | undefined, row: JournalRow): Seq {
  const released = before?.releasedUpTo ?? (0 as Seq)
  const isRelease = row.kind === 'ended_released' || row.kind === 'requests_released'
  return isRelease ? maxOf(released, row.up_to as Seq) : released
}

/** Applies the rows atomically: if a row throws, no row is applied. */
export function applyAll(state: ExchangeState, entries: Iterable<Entry>): void {
  const { undo } = state.core
  const { mark } = undo
  try {
    for (const entry of entries) apply(state, entry)
  } catch (error) {
    undo.undoTo(mark)
    throw error
  }
}
