/**
 * Appends a chunk's changes to the feed in the chunk's transaction, so that the live feed never shows more than REST. A
 * shard has one row, or none if nothing changes for readers.
 */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { encodeChanges, type FeedChanges } from '../../db/feed-changes.ts'
import { MARKETS_HEAD, marketHead, userHead } from '../../db/feed-schema.ts'
import { arrayElement, joinTexts, splitTexts, type WriteClause } from './read-table.ts'
import type { ShardEntry } from './row-change.ts'
import { EMPTIED_LEVELS } from './tables/book-levels.ts'

/** A projection's part of one shard's feed row. */
export interface FeedPart extends FeedChanges {
  /** True if the clauses of the book's levels are part of the statement: the row gets their values after the change. */
  readonly hasLevels?: boolean
  /** Accounts whose balances the shard's rows change: likewise. */
  readonly balancesOf?: readonly number[]
}

/** Identified by the shard's market; that of `accounts` is 0. */
export interface MarketFeed extends FeedPart {
  readonly marketId: number
}

/** Age after which rows are deleted, and the number of rows beyond which they are, whatever their age. */
export const FEED_AGE_MS = 60_000
export const FEED_ROWS = 50_000
/** Most rows that a chunk deletes for each row that it adds. */
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

/** A shard's place after the chunk, and the chunk's rows of it. */
export interface FeedShard {
  readonly shard: string
  readonly marketId: number
  readonly epoch: number
  readonly seq: number
  readonly entries: readonly ShardEntry[]
}

/** A feed row that a chunk appends. `back`: 0 for the chunk's last row, 1 for the previous row, and so on. */
export interface FeedRow {
  readonly back: number
  readonly shard: FeedShard
  readonly heads: readonly string[]
  readonly parts: readonly MarketFeed[]
}

/** One row per shard whose rows change something for readers, in the order of the shards. */
export function feedRows(feeds: readonly MarketFeed[], shards: readonly FeedShard[]): FeedRow[] {
  const partsOf = Map.groupBy(feeds, ({ marketId }) => marketId)
  const rows = shards.flatMap((shard) => {
    const parts = partsOf.get(shard.marketId) ?? []
    const heads = headsOf(shard.marketId, parts)
    return heads.length === 0 ? [] : [{ shard, heads, parts }]
  })
  return rows.map((row, at) => ({ ...row, back: rows.length - 1 - at }))
}

const batchOf = (entries: readonly ShardEntry[]): number | null =>
  entries.reduce<number | null>(
    (batch, { row }) => (row.kind === 'batch_cleared' ? row.batch_id : batch),
    null,
  )

/**
 * Values after the change: SQL expressions of JSON lists of [market, levels of its book], and of [account, its balance]. As the clauses of
 * the chunk return them, in the statement with these clauses.
 */
interface ChangedValues {
  readonly levels: string
  readonly balances: string
}

const NULL: ChangedValues = { levels: 'null::json', balances: 'null::json' }

function changedValues(rows: readonly FeedRow[]): ChangedValues {
  const parts = rows.flatMap((row) => row.parts)
  const hasLevels = parts.some((part) => part.hasLevels)
  const hasBalances = parts.some(({ balancesOf = [] }) => balancesOf.length > 0)
  const levels = `(
    select json_object_agg(market_id, levels) from (
      select market_id, json_agg(json_build_array(side, price, quantity, order_count)) as levels from (
        select market_id, side, price, quantity, order_count from "set read.book_levels"
        union all select market_id, side, price, 0, 0 from ${EMPTIED_LEVELS}
      ) changed group by market_id
    ) books
  )`
  const balances = `(
    select json_object_agg(
      user_id, json_build_array(user_id, free::text, reserved::text, pending_withdrawal::text)
    ) from "set read.balances"
  )`
  return { ...NULL, ...(hasLevels && { levels }), ...(hasBalances && { balances }) }
}

/** Run-time parameters of the transaction that hold the values for a later statement, so that it is sent without waiting for them. */
const KEPT = { levels: 'clearbatch.levels', balances: 'clearbatch.balances' } as const

/** An SQL expression that keeps the values, in the statement with the clauses of the chunk. */
export function keepValues(rows: readonly FeedRow[]): string {
  const { levels, balances } = changedValues(rows)
  const keep = (name: string, value: string): string =>
    `set_config('${name}', coalesce((${value})::text, ''), true)`
  return `(select ${keep(KEPT.levels, levels)} || ${keep(KEPT.balances, balances)} is null)`
}

const keptValue = (name: string): string => `nullif(current_setting('${name}'), '')::json`
const KEPT_VALUES: ChangedValues = { levels: keptValue(KEPT.levels), balances: keptValue(KEPT.balances) }

/**
 * Numbers the rows, and locks the feed until the transaction ends: a lower number never commits later. It is the last of the shared clauses.
 * Its epoch begins now if the state is lost.
 */
const stateClause = (count: number): WriteClause => ({
  name: '"feed state"',
  isShared: true,
  text: (first, condition) => `
    insert into read.feed_state as stored (epoch, first_seq, seq)
    select now, 0, $${first}::bigint from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as now) clock
    where ${condition}
    on conflict (id) do update set seq = stored.seq + excluded.seq
    returning seq, (extract(epoch from clock_timestamp()) * 1000)::bigint as at
  `,
  parameters: [String(count)],
})

/**
 * By topic, the chunk's rows that concern it (`back`), each with the topic's previous row in the chunk; null for the
 * first, whose predecessor is stored.
 */
function topicsOf(rows: readonly FeedRow[]): Map<string, Record<number, number | null>> {
  const topics = new Map<string, Record<number, number | null>>()
  const last = new Map<string, number>()
  for (const { back, heads } of rows) {
    for (const head of heads) {
      topics.set(head, { ...topics.get(head), [back]: last.get(head) ?? null })
      last.set(head, back)
    }
  }
  return topics
}

/** Moves each topic to its last row. `prev_seq` is then its last row of the chunks before. */
const headsClause = (topics: ReturnType<typeof topicsOf>): WriteClause => ({
  name: '"feed heads"',
  text: (first) => `
    insert into read.feed_heads as stored (topic, seq, prev_seq)
    select topic, state.seq - back, 0 from "feed state" state, unnest($${first}::text[], $${first + 1}::integer[]) as t (topic, back)
    on conflict (topic) do update set prev_seq = stored.seq, seq = excluded.seq returning topic, prev_seq
  `,
  parameters: [
    `{${[...topics.keys()].map((topic) => `"${topic}"`).join()}}`,
    `{${[...topics.values()].map((backs) => Math.min(...Object.keys(backs).map(Number))).join()}}`,
  ],
})

/** Deletes the oldest rows, a few per new row, so that no chunk waits for a large deletion. */
const pruneClause = (count: number): WriteClause => ({
  name: '"feed pruned"',
  text: (first) => `
    delete from read.feed using "feed state" state, (select seq, at from read.feed order by seq limit $${first}::integer) oldest
    where feed.seq = oldest.seq and (oldest.at < state.at - ${FEED_AGE_MS} or oldest.seq <= state.seq - ${FEED_ROWS})
  `,
  parameters: [String(count * DELETED_ROWS)],
})

/**
 * Clauses that append a chunk's rows; empty if nothing changes for readers. `areKept`: an earlier statement of the
 * transaction stored the values, so the clauses can be a further statement.
 */
export function feedClauses(
  rows: readonly FeedRow[],
  { areKept }: { readonly areKept: boolean },
): WriteClause[] {
  if (rows.length === 0) return []
  const topics = topicsOf(rows)
  return [
    stateClause(rows.length),
    headsClause(topics),
    rowsClause(rows, topics, areKept ? KEPT_VALUES : changedValues(rows)),
    pruneClause(rows.length),
  ]
}

/** Values are assigned to their rows in one pass each: a chunk may have hundreds of topics and accounts in as many rows. */
function rowsClause(
  rows: readonly FeedRow[],
  topics: ReturnType<typeof topicsOf>,
  { levels, balances }: ChangedValues,
): WriteClause {
  const text = (first: number): string => {
    const parameter = (at: number, type: string): string => `$${first + at}::${type}`
    return `
      insert into read.feed (seq, at, shard, shard_epoch, shard_seq, batch_id, changes, heads, levels, balances)
      select state.seq - r.back, state.at, r.shard, r.epoch, r.shard_seq, nullif(r.batch_id, -1), coalesce(r.changes, ''), h.heads, l.levels, b.balances
      from "feed state" state
      cross join unnest(
        ${parameter(0, 'integer[]')}, ${parameter(1, 'text[]')}, ${parameter(2, 'integer[]')}, ${parameter(3, 'bigint[]')},
        ${parameter(4, 'bigint[]')}, ${parameter(5, 'text[]')}, ${splitTexts(parameter(6, 'text'))}
      ) as r (back, shard, epoch, shard_seq, batch_id, market, changes)
      join (
        select of_row.key as back, json_object_agg(topic, coalesce(state.seq - of_row.value::integer, prev_seq)) as heads
        from "feed heads" cross join "feed state" state
        cross join lateral jsonb_each_text(${parameter(7, 'jsonb')} -> topic) of_row
        group by of_row.key
      ) h on h.back = r.back::text
      left join (select key as market, value as levels from json_each(${levels})) l on l.market = r.market
      left join (
        select of_row.value as back, json_agg(changed.value) as balances
        from json_each(${balances}) changed
        cross join lateral jsonb_array_elements_text(${parameter(8, 'jsonb')} -> changed.key) of_row
        group by of_row.value
      ) b on b.back = r.back::text
      returning seq
    `
  }
  const column = (value: (row: FeedRow) => string | number): string =>
    `{${rows.map((row) => arrayElement(value(row))).join()}}`
  return {
    name: '"feed rows"',
    text,
    parameters: [
      column(({ back }) => back),
      column(({ shard }) => shard.shard),
      column(({ shard }) => shard.epoch),
      column(({ shard }) => shard.seq),
      column(({ shard }) => batchOf(shard.entries) ?? -1),
      column(({ shard, parts }) => (parts.some(({ hasLevels }) => hasLevels) ? String(shard.marketId) : '')),
      joinTexts(rows.map(({ parts }) => encodeChanges(merge(parts)))),
      JSON.stringify(Object.fromEntries(topics)),
      JSON.stringify(Object.fromEntries(rowsOfAccounts(rows))),
    ],
  }
}

/** For each account whose balance changes, the rows that change it. */
function rowsOfAccounts(rows: readonly FeedRow[]): Map<number, number[]> {
  const accounts = new Map<number, number[]>()
  for (const { back, parts } of rows) {
    for (const userId of new Set(parts.flatMap(({ balancesOf = [] }) => balancesOf))) {
      const own = accounts.get(userId) ?? []
      own.push(back)
      accounts.set(userId, own)
    }
  }
  return accounts
}

/** Readers begin with snapshots again: the feed lacks what a fill has changed. */
export async function startFeedEpoch(tx: Tx): Promise<void> {
  await sql`
    insert into read.feed_state as stored (epoch, first_seq, seq) values ((extract(epoch from clock_timestamp()) * 1000)::bigint, 0, 0)
    on conflict (id) do update set first_seq = stored.seq, epoch = greatest(stored.epoch + 1, excluded.epoch)
  `.execute(tx)
}

/** An SQL expression of the number of the last row, in the statement with the clauses that append the rows. */
export const LAST_FEED_SEQ = '(select seq from "feed state")'

function merge(parts: readonly FeedPart[]): FeedChanges {
  const all = <Name extends keyof FeedChanges>(name: Name) =>
    parts.flatMap((part) => (part[name] ?? []) as never[])
  return {
    orders: all('orders'),
    fills: all('fills'),
    removedParts: all('removedParts'),
    positions: all('positions'),
    transactions: all('transactions'),
    removedTransactions: all('removedTransactions'),
    adjustments: all('adjustments'),
    batches: all('batches'),
    markets: all('markets'),
  }
}
