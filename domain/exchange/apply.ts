/** `apply`: the only code that changes a state. It repeats what rows state and decides nothing. */
import { violated } from '../invariant.ts'
import type { AccountsRow } from '../journal/accounts-row.ts'
import type { ChainRow } from '../journal/chain-rows.ts'
import { ACCOUNTS_SHARD, CHAIN_SHARD, type JournalRow, type MarketRow } from '../journal/journal-row.ts'
import { type MarketId, maxOf, type Seq } from '../units.ts'
import { applyAccountsRow } from './apply/accounts.ts'
import { applyChainRow, followFact } from './apply/blocks.ts'
import { applyMarketRow } from './apply/markets.ts'
import type { ExchangeState, HeadRow } from './state.ts'

/** A row with its place: its sequence in the journal of its market, or of the accounts. */
export interface Entry {
  readonly shard: string
  readonly seq: number
  readonly row: JournalRow
}

/** The shard of the chain, as the id of a market. */
export const CHAIN = 0xffff_ffff as MarketId

/** The newest format of the row's kind that this code reads. A placement has flags from version 2 on, brackets from 3, builders from 4. */
const newestVersion = ({ kind }: JournalRow): number => (kind === 'order_placed' ? 4 : 1)

/** 0 for the accounts. */
export function marketIdOf(shard: string): MarketId {
  if (shard === CHAIN_SHARD) return CHAIN
  return (shard === ACCOUNTS_SHARD ? 0 : Number(shard.slice(1))) as MarketId
}

/**
 * Applies one row. Rows of one shard come in the order of their sequences without gaps; rows of several shards in any interleaving that keeps
 * the order in which one row needs another: an account exists before rows of markets name it.
 *
 * If it throws, the state may have changed in part: the caller returns to the mark that it took before.
 */
export function apply(state: ExchangeState, { shard, seq, row }: Entry): void {
  const marketId = marketIdOf(shard)
  const before = state.heads.get(marketId)
  const head = before?.seq ?? 0
  if (seq !== head + 1)
    throw violated(`the row after ${head} of ${shard} has the next sequence, received ${seq}`)
  if ((row.v ?? 1) > newestVersion(row))
    throw violated(`a row has at most version ${newestVersion(row)}, received ${row.v} of ${row.kind}`)
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

/** Applies rows as one: if a row throws, none of them has been applied. */
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
