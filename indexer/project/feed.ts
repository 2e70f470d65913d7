/**
 * Appends what a chunk changes for readers to the feed, in the chunk's own statement: the live feed never shows what REST does not show. One
 * row per chunk; a chunk that changes nothing for readers has none.
 */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { encodeChanges, type FeedChanges } from '../../db/feed-changes.ts'
import { MARKETS_HEAD, marketHead, userHead } from '../../db/feed-schema.ts'
import type { WriteClause } from './read-table.ts'
import type { ShardEntry } from './row-change.ts'

/** What a projection adds to the feed's row. */
export interface FeedPart extends FeedChanges {
  /** True if the clause of the book's levels is part of the statement: the row gets their values after the change. */
  readonly hasLevels?: boolean
  /** Accounts whose balances the chunk changes: likewise. */
  readonly balancesOf?: readonly number[]
}

/** Age after which rows are deleted, and the number of rows beyond which they are, whatever their age. */
export const FEED_AGE_MS = 60_000
export const FEED_ROWS = 50_000
/** Most rows that a chunk deletes. It adds one. */
const DELETED_ROWS = 4

/** The topics that the changes concern, ascending. */
export function headsOf(marketId: number, parts: readonly FeedPart[]): string[] {
  const heads = new Set<string>()
  const addMarket = (...channels: readonly Parameters<typeof marketHead>[1][]) => {
    for (const channel of channels) heads.add(marketHead(marketId, channel))
  }
  const hasRows = (rows: readonly unknown[] | undefined): boolean => rows !== undefined && rows.length > 0
  for (const part of parts) {
    const { orders = [], fills = [], positions = [], transactions = [], removedTransactions = [] } = part
    const { adjustments = [] } = part
    if (part.hasLevels) addMarket('book')
    if (hasRows(fills) || hasRows(part.removedParts)) addMarket('trades', 'stats', 'candles')
    if (hasRows(part.batches)) addMarket('auction', 'stats', 'candles')
    if (hasRows(part.markets)) {
      addMarket('stats', 'candles')
      heads.add(MARKETS_HEAD)
    }
    for (const rows of [orders, fills, positions, transactions, removedTransactions, adjustments])
      for (const { user_id } of rows) heads.add(userHead(user_id))
    for (const userId of part.balancesOf ?? []) heads.add(userHead(userId))
  }
  return [...heads].sort()
}

/** The place of the chunk in its journal, and its rows. */
export interface FeedChunk {
  readonly shard: string
  readonly epoch: number
  readonly seq: number
  readonly entries: readonly ShardEntry[]
}

const batchOf = (entries: readonly ShardEntry[]): number | null =>
  entries.reduce<number | null>(
    (batch, { row }) => (row.kind === 'batch_cleared' ? row.batch_id : batch),
    null,
  )

/** Values after the change, each an SQL expression of a list as JSON. */
interface ChangedValues {
  readonly levels: string
  readonly balances: string
}

const NULL: ChangedValues = { levels: 'null', balances: 'null' }

/** As the clauses of the chunk return them, in the statement with these clauses. */
function changedValues(parts: readonly FeedPart[]): ChangedValues {
  const hasLevels = parts.some((part) => part.hasLevels)
  const hasBalances = parts.some(({ balancesOf = [] }) => balancesOf.length > 0)
  const levels = `(
    select json_agg(json_build_array(side, price, quantity, order_count)) from "set read.book_levels"
  )`
  const balances = `(
    select json_agg(json_build_array(user_id, free::text, reserved::text, pending_withdrawal::text)) from "set read.balances"
  )`
  return { ...NULL, ...(hasLevels && { levels }), ...(hasBalances && { balances }) }
}

/** Run-time parameters of the transaction that hold the values for a later statement, so that it is sent without waiting for them. */
const KEPT = { levels: 'clearbatch.levels', balances: 'clearbatch.balances' } as const

/** An SQL expression that keeps the values, in the statement with the clauses of the chunk. */
export function keepValues(parts: readonly FeedPart[]): string {
  const { levels, balances } = changedValues(parts)
  const keep = (name: string, value: string): string =>
    `set_config('${name}', coalesce((${value})::text, ''), true)`
  return `(select ${keep(KEPT.levels, levels)} || ${keep(KEPT.balances, balances)} is null)`
}

const keptValue = (name: string): string => `nullif(current_setting('${name}'), '')::json`
const KEPT_VALUES: ChangedValues = { levels: keptValue(KEPT.levels), balances: keptValue(KEPT.balances) }

/**
 * Numbers the row, and locks the feed until the transaction ends: a lower number never commits later. It is the last of the shared clauses.
 * Its epoch begins now if the state is lost.
 */
const stateClause = (): WriteClause => ({
  name: '"feed state"',
  isShared: true,
  text: (first, condition) => `
    insert into read.feed_state as stored (epoch, first_seq, seq)
    select now, 0, $${first}::bigint from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as now) clock
    where ${condition}
    on conflict (id) do update set seq = stored.seq + 1
    returning seq, (extract(epoch from clock_timestamp()) * 1000)::bigint as at
  `,
  parameters: ['1'],
})

const headsClause = (heads: readonly string[]): WriteClause => ({
  name: '"feed heads"',
  text: (first) => `
    insert into read.feed_heads as stored (topic, seq, prev_seq)
    select topic, state.seq, 0 from "feed state" state, unnest($${first}::text[]) topic
    on conflict (topic) do update set prev_seq = stored.seq, seq = excluded.seq returning topic, prev_seq
  `,
  parameters: [`{${heads.map((head) => `"${head}"`).join()}}`],
})

/** Rows leave in the order of their numbers, a few with each new one, so that no chunk waits for many. */
const pruneClause = (): WriteClause => ({
  name: '"feed pruned"',
  text: (first) => `
    delete from read.feed using "feed state" state, (select seq, at from read.feed order by seq limit $${first}::integer) oldest
    where feed.seq = oldest.seq and (oldest.at < state.at - ${FEED_AGE_MS} or oldest.seq <= state.seq - ${FEED_ROWS})
  `,
  parameters: [String(DELETED_ROWS)],
})

/**
 * The clauses that append the row of a chunk; none if it changes nothing for readers. `areKept`: an earlier statement of the transaction has
 * kept the values; otherwise these clauses are in the statement with those of the chunk.
 */
export function feedClauses(
  parts: readonly FeedPart[],
  { shard, epoch, seq, entries }: FeedChunk,
  { areKept }: { readonly areKept: boolean },
): WriteClause[] {
  const heads = headsOf(entries[0]?.marketId ?? 0, parts)
  if (heads.length === 0) return []
  const { levels, balances } = areKept ? KEPT_VALUES : changedValues(parts)
  const row: WriteClause = {
    name: FEED_ROW,
    text: (first) => `
      insert into read.feed (seq, at, shard, shard_epoch, shard_seq, batch_id, changes, heads, levels, balances)
      select state.seq, state.at, $${first}::text, $${first + 1}::integer, $${first + 2}::bigint, nullif($${first + 3}::bigint, -1),
        $${first + 4}::text, (select json_object_agg(topic, prev_seq) from "feed heads"),
        ${levels}, ${balances}
      from "feed state" state returning seq
    `,
    parameters: [
      shard,
      String(epoch),
      String(seq),
      String(batchOf(entries) ?? -1),
      encodeChanges(merge(parts)),
    ],
  }
  return [stateClause(), headsClause(heads), row, pruneClause()]
}

/** Readers begin with snapshots again: the feed lacks what a fill has changed. */
export async function startFeedEpoch(tx: Tx): Promise<void> {
  await sql`
    insert into read.feed_state as stored (epoch, first_seq, seq) values ((extract(epoch from clock_timestamp()) * 1000)::bigint, 0, 0)
    on conflict (id) do update set first_seq = stored.seq, epoch = greatest(stored.epoch + 1, excluded.epoch)
  `.execute(tx)
}

/** The clause that returns the number of the row. */
export const FEED_ROW = '"feed row"'

function merge(parts: readonly FeedPart[]): FeedChanges {
  const all = <Name extends keyof FeedChanges>(name: Name) =>
    parts.flatMap((part) => (part[name] ?? []) as never[])
  return {
    ...{ orders: all('orders'), fills: all('fills'), removedParts: all('removedParts') },
    ...{ positions: all('positions'), transactions: all('transactions') },
    ...{
      adjustments: all('adjustments'),
      removedTransactions: all('removedTransactions'),
      batches: all('batches'),
      markets: all('markets'),
    },
  }
}
