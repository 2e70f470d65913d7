/**
 * Equity of an account over time. Positions are valued when they are read, at the end of each interval, so that an
 * account without events costs nothing.
 */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { fundingColumn, type StoredFunding, toFunding } from '../../db/funding.ts'
import type { ReadTableName } from '../../db/read-schema.ts'
import type { StoredEnd } from '../../domain/journal/ending-rows.ts'
import { INTERVALS, intervalStart, spanOf } from '../../domain/market-data/interval.ts'
import type { EquityFlows, HeldPosition } from '../../domain/positions/equity-history.ts'
import { type FundingState, fundingIndexAt, NO_FUNDING } from '../../domain/prices/funding-state.ts'
import {
  type FundingIndex,
  type HourlyFunding,
  type Millis,
  minOf,
  type Price,
  type Quote,
  type Steps,
} from '../../domain/units.ts'
import { anyNumber } from '../wire/list-query.ts'

/** Tables that the queries of equity read. */
export const EQUITY_TABLES = [
  ...(['read.cash_flows', 'read.realized_profits', 'read.position_states'] as const),
  ...(['read.funding_rates', 'read.price_candles'] as const),
] as const satisfies readonly ReadTableName[]

export type EquityInterval = '1h' | '1d'

/** Whose equity, and of which market alone. */
export interface EquityAccount {
  readonly userId: number
  /** Undefined: all markets. */
  readonly marketId: number | undefined
}

// ---------------------------------------------------------------------- markets and the start of the list

/** A market in which the account has had a position. */
export interface HeldMarket {
  readonly market_id: number
  readonly first_at: number
  readonly ended: StoredEnd | null
  readonly funding: StoredFunding
}

/** One look-up in the index of the account's states per market in which it has traded. */
export async function heldMarkets(db: Db | Tx, { userId, marketId }: EquityAccount): Promise<HeldMarket[]> {
  const states = sql`read.position_states where user_id = ${userId}`
  const all = sql`
    (select market_id from ${states} order by market_id limit 1)
    union all
    select (select market_id from ${states} and market_id > held.market_id order by market_id limit 1) from held
    where held.market_id is not null
  `
  const { rows } = await sql<HeldMarket>`
    with recursive held (market_id) as (${marketId === undefined ? all : sql`select ${anyNumber(marketId)}`})
    select m.market_id, s.at as first_at, m.ended, ${sql.raw(fundingColumn('m.market_id'))} as funding
    from held join markets m on m.market_id = held.market_id
    cross join lateral (
      select at from ${states} and market_id = m.market_id order by at, number limit 1
    ) s
    order by m.market_id
  `.execute(db)
  return rows
}

/** The time of the account's first deposit or withdrawal that is still on the chain; null if there is none. */
export async function firstFlow(db: Db | Tx, userId: number): Promise<number | null> {
  const { rows } = await sql<{ start: number }>`
    select start from read.cash_flows
    where user_id = ${userId} and span = ${INTERVALS['1h']} and (deposits <> 0 or withdrawals <> 0)
    order by start limit 1
  `.execute(db)
  return rows[0]?.start ?? null
}

// ---------------------------------------------------------------------- flows

interface FlowRow {
  readonly start: number
  readonly deposits: bigint
  readonly withdrawals: bigint
  readonly realized_pnl: bigint
  readonly fees: bigint
  readonly funding: bigint
}

const toFlows = (row: FlowRow): EquityFlows => ({
  deposits: row.deposits,
  withdrawals: row.withdrawals,
  realizedPnl: row.realized_pnl,
  fees: row.fees,
  funding: row.funding,
})

/** A range of stored intervals of one length. */
interface Stored {
  readonly span: number
  readonly from: number
  readonly to: number
}

/** The sums of one length in a range by `start`, an SQL expression. Deposits and withdrawals belong to no market. */
const flowsIn = ({ userId, marketId }: EquityAccount, { span, from, to }: Stored, start: string) => {
  const rows = sql`user_id = ${userId} and span = ${span} and start >= ${from} and start < ${to}`
  const profits = sql`
    select ${sql.raw(start)} as start, 0::numeric as deposits, 0::numeric as withdrawals, realized_pnl, fees, funding
    from read.realized_profits where ${rows} ${marketId === undefined ? sql`` : sql`and market_id = ${anyNumber(marketId)}`}
  `
  if (marketId !== undefined) return profits
  return sql`
    ${profits} union all
    select ${sql.raw(start)}, deposits, withdrawals, 0, 0, 0 from read.cash_flows where ${rows}
  `
}

const summed = (parts: ReturnType<typeof flowsIn>) => sql<FlowRow>`
  select start, sum(deposits) as deposits, sum(withdrawals) as withdrawals, sum(realized_pnl) as realized_pnl,
    sum(fees) as fees, sum(funding) as funding
  from (${parts}) flows group by start
`

/** By start of the interval, without intervals in which nothing happened. */
export async function flowsOf(
  db: Db | Tx,
  account: EquityAccount,
  range: Stored,
): Promise<ReadonlyMap<number, EquityFlows>> {
  const { rows } = await summed(flowsIn(account, range, 'start')).execute(db)
  return new Map(rows.map((row) => [row.start, toFlows(row)]))
}

/** All flows before a time at which an hour begins: one row per day with events and market, and those of the hours of the last day. */
export async function flowsBefore(
  db: Db | Tx,
  account: EquityAccount,
  time: number,
): Promise<EquityFlows | null> {
  const day = intervalStart('1d', time)
  const days = flowsIn(account, { span: INTERVALS['1d'], from: 0, to: day }, '0::bigint')
  const hours = flowsIn(account, { span: INTERVALS['1h'], from: day, to: time }, '0::bigint')
  const { rows } = await summed(sql`${days} union all ${hours}`).execute(db)
  return rows[0] === undefined ? null : toFlows(rows[0])
}

// ---------------------------------------------------------------------- positions

interface StateRow {
  readonly at: number
  readonly market_id: number
  readonly size: number
  readonly entry_notional: bigint
  readonly funding_index: bigint
  readonly rate: string | null
  readonly rate_index: string | null
  readonly rate_from: number | null
  readonly rate_until: number | null
  readonly mark: string | null
}

export interface Valuation {
  readonly interval: EquityInterval
  /** Ends of intervals, ascending. */
  readonly ends: readonly number[]
  readonly now: Millis
}

export interface ValuedPosition extends HeldPosition {
  readonly market_id: number
  /** The end of the interval. */
  readonly at: number
}

/** Positions at the end of each interval. A market without positions costs one lookup, each other market three per interval. */
export async function positionsAt(
  db: Db | Tx,
  userId: number,
  markets: readonly HeldMarket[],
  { interval, ends, now }: Valuation,
): Promise<ValuedPosition[]> {
  const { rows } = await sql<StateRow>`
    select t.at, m.market_id, s.size, s.entry_notional, s.funding_index, f.rate::text as rate,
      f.funding_index::text as rate_index, f.as_of as rate_from, f.valid_until as rate_until, c.mark_close::text as mark
    from unnest(${markets.map(({ market_id }) => market_id)}::integer[]) m (market_id)
    cross join unnest(${ends}::bigint[]) t (at)
    cross join lateral (
      select size, entry_notional, funding_index from read.position_states
      where user_id = ${userId} and market_id = m.market_id and at < t.at order by at desc, number desc limit 1
    ) s
    left join lateral (
      select as_of, rate, valid_until, funding_index from read.funding_rates
      where market_id = m.market_id and is_mined and as_of <= t.at order by as_of desc, action_id desc limit 1
    ) f on true
    left join lateral (
      select mark_close from read.price_candles
      where market_id = m.market_id and span = ${spanOf(interval)} and start < t.at order by start desc limit 1
    ) c on true
    where s.size <> 0
  `.execute(db)
  const byId = new Map(markets.map((market) => [market.market_id, market]))
  return rows.map((row) => valued(row, byId.get(row.market_id) as HeldMarket, now))
}

/** Now, and after the market's end, its funding is what the chain and the queue of actions have; before, that of the update in force. */
function valued(row: StateRow, { ended, funding }: HeldMarket, now: Millis): ValuedPosition {
  const hasEnded = ended !== null && row.at >= ended.ended_at
  const state = hasEnded || row.at > now ? toFunding(funding) : updateOf(row)
  const mark = hasEnded ? ended.price : row.mark
  return {
    market_id: row.market_id,
    at: row.at,
    size: row.size as Steps,
    entryNotional: row.entry_notional as Quote,
    fundedTo: row.funding_index as FundingIndex,
    index: fundingIndexAt(state, minOf(row.at as Millis, now)),
    price: mark === null ? null : (BigInt(mark) as Price),
  }
}

function updateOf({ rate, rate_index, rate_from, rate_until }: StateRow): FundingState {
  if (rate === null || rate_index === null) return NO_FUNDING
  const [asOf, validUntil] = [rate_from as Millis, rate_until as Millis]
  return {
    index: BigInt(rate_index) as FundingIndex,
    asOf,
    running: { rate: BigInt(rate) as HourlyFunding, validFrom: asOf, validUntil },
  }
}
