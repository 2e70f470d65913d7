/**
 * `read.position_states`: one row per mined event of a position, with the state after it. A rollback deletes its
 * event's rows, so that the earlier state applies again.
 */
import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { PROJECTED_TABLES, type ReadPositionStatesTable } from '../../../db/read-schema.ts'
import type { PartSettled, PositionChange } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow, PositionsMoved } from '../../../domain/journal/journal-row.ts'
import { isAdjustment } from '../../../domain/journal/move-cause.ts'
import { fundingPayment } from '../../../domain/prices/funding-payment.ts'
import type { FundingIndex, Steps } from '../../../domain/units.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { byMarket, type ShardEntry } from '../row-change.ts'
import { eventTransactionId } from './ledger-transactions.ts'
import { marginChange } from './margin-change.ts'
import { REALIZED_PROFITS, type RealizedProfit, RealizedProfits } from './realized-profits.ts'

export type PositionState = Selectable<ReadPositionStatesTable>

const POSITION_STATES = tableOf<PositionState>({
  table: 'read.position_states',
  key: ['user_id', 'market_id', 'number'],
  columns: {
    user_id: 'bigint',
    market_id: 'integer',
    number: 'bigint',
    event: 'text',
    side: 'text',
    size: 'bigint',
    largest: 'bigint',
    opened_steps: 'bigint',
    opened_value: 'numeric',
    closed_steps: 'bigint',
    closed_value: 'numeric',
    entry_notional: 'numeric',
    realized_pnl: 'numeric',
    fees: 'numeric',
    funding: 'numeric',
    funding_index: 'numeric',
    opened_at: 'bigint',
    closed_at: 'bigint',
    ending: 'text',
    at: 'bigint',
  },
})

type TouchRow = PartSettled | PositionsMoved

/** An adjustment moves the account's own margin: nothing is gained, and the size stays. */
const isTouch = (row: JournalRow): row is TouchRow =>
  row.kind === 'part_settled' || (row.kind === 'positions_moved' && !isAdjustment(row))

interface Gain {
  readonly realized: bigint
  readonly fee: bigint
}

/**
 * Result of a part's fills; for other events, the change of free balance plus margin. An account whose position is
 * taken over loses its margin.
 */
function gainOf(row: TouchRow, change: PositionChange): Gain {
  const userId = change.user_id
  if (row.kind === 'part_settled') {
    const own = row.fills.filter(({ user_id }) => user_id === userId)
    return {
      realized: own.reduce((sum, { realized_pnl }) => sum + BigInt(realized_pnl), 0n),
      fee: own.reduce((sum, { fee }) => sum + BigInt(fee), 0n),
    }
  }
  const paid = row.balances.filter(({ user_id }) => user_id === userId)
  const free = paid.reduce((sum, { free_delta }) => sum + BigInt(free_delta), 0n)
  // For example, a deleveraging's counterparty gains its payout less the margin that it got back.
  return { realized: free + marginChange(row, change), fee: 0n }
}

const ENDINGS = {
  inherited: 'inheritance',
  deleveraged: 'deleveraging',
  insolvency_reported: 'settlement',
  deficit_covered: 'settlement',
  claimed: 'settlement',
} as const

function endingOf(row: TouchRow, userId: number): string {
  if (row.kind === 'positions_moved') return ENDINGS[row.cause as keyof typeof ENDINGS]
  const isForced = row.fills.some(({ user_id, forced }) => user_id === userId && forced)
  return isForced ? 'liquidation' : 'trade'
}

const sizeOf = (steps: number): bigint => BigInt(Math.abs(steps))

/** The states that the event adds: one, or two if it turns the position. `last` is the newest state, if any. */
function statesAfter(
  marketId: number,
  last: PositionState | undefined,
  row: TouchRow,
  change: PositionChange,
): PositionState[] {
  const open = last === undefined || last.closed_at !== null ? null : last
  const before = open?.size ?? 0
  const after = before + change.size_delta
  if (before === 0 && after === 0) return []
  const isTurned = before * after < 0
  const { realized, fee } = gainOf(row, change)
  const entryDelta = BigInt(change.entry_notional_delta)
  const entry = (open?.entry_notional ?? 0n) + entryDelta
  const index = BigInt(row.funding_index ?? '0')
  const closed = isTurned ? sizeOf(before) : sizeOf(before) - sizeOf(after)
  const closingFee = isTurned ? (fee * closed) / (closed + sizeOf(after)) : fee
  const place = {
    user_id: change.user_id,
    market_id: marketId,
    event: eventTransactionId(row, change.user_id),
    // Block times count whole seconds and auctions milliseconds, so that a later event can have an earlier time.
    at: Math.max(row.at, last?.at ?? 0),
  }
  const number = (last?.number ?? 0) + 1

  const states: PositionState[] = []
  if (open !== null) {
    const ends = isTurned || after === 0
    const closedEntry = isTurned ? open.entry_notional : -entryDelta
    const funding = fundingPayment(before as Steps, open.funding_index as FundingIndex, index as FundingIndex)
    states.push({
      ...{ ...open, ...place, number, size: ends ? 0 : after, entry_notional: ends ? 0n : entry },
      largest: isTurned ? open.largest : Math.max(open.largest, Math.abs(after)),
      ...(closed < 0n && {
        opened_steps: open.opened_steps + Number(-closed),
        opened_value: open.opened_value + entryDelta,
      }),
      ...(closed > 0n && {
        closed_steps: open.closed_steps + Number(closed),
        closed_value: open.closed_value + closedEntry + (before > 0 ? realized : -realized),
      }),
      realized_pnl: open.realized_pnl + realized,
      fees: open.fees + closingFee,
      ...{ funding: open.funding + funding, funding_index: index },
      ...(ends && { closed_at: place.at, ending: endingOf(row, change.user_id) }),
    })
  }
  if (open === null || isTurned) {
    states.push({
      ...{ ...place, number: number + states.length, side: after > 0 ? 'LONG' : 'SHORT', size: after },
      ...{
        largest: Math.abs(after),
        opened_steps: Math.abs(after),
        opened_value: entry,
      },
      ...{ closed_steps: 0, closed_value: 0n, entry_notional: entry },
      realized_pnl: open === null ? realized : 0n,
      fees: open === null ? fee : fee - closingFee,
      funding: 0n,
      funding_index: index,
      opened_at: place.at,
      closed_at: null,
      ending: null,
    })
  }
  return states
}

/** The states of one market's positions, as each journal row leaves them. */
export class PositionStates {
  readonly #marketId: number
  readonly #states: Map<number, PositionState[]>
  /** By user: states up to this number are as they were before the chunk. */
  readonly #unchanged = new Map<number, number>()
  readonly #loaded = new Map<number, number>()
  readonly #profits = new RealizedProfits()

  /** The newest states by user, oldest first: two more per rolled-back event than the newest, or all. */
  constructor(marketId: number, states: ReadonlyMap<number, readonly PositionState[]>) {
    this.#marketId = marketId
    this.#states = new Map([...states].map(([userId, own]) => [userId, [...own]]))
    for (const [userId, own] of states) this.#loaded.set(userId, own.at(-1)?.number ?? 0)
  }

  apply(row: JournalRow): void {
    if (!isTouch(row)) return
    for (const change of row.positions) {
      const own = this.#states.get(change.user_id) ?? []
      this.#states.set(change.user_id, own)
      if (row.rollback) this.#rollBack(own, change.user_id, eventTransactionId(row, change.user_id))
      else this.#add(own, statesAfter(this.#marketId, own.at(-1), row, change))
    }
  }

  #add(own: PositionState[], states: readonly PositionState[]): void {
    for (const state of states) {
      this.#profits.add(state, own.at(-1), 1n)
      own.push(state)
    }
  }

  #rollBack(own: PositionState[], userId: number, event: string): void {
    while (own.at(-1)?.event === event) {
      const state = own.pop() as PositionState
      this.#profits.add(state, own.at(-1), -1n)
    }
    this.#unchanged.set(userId, Math.min(this.#unchangedOf(userId), own.at(-1)?.number ?? 0))
  }

  #unchangedOf(userId: number): number {
    return this.#unchanged.get(userId) ?? this.#loaded.get(userId) ?? 0
  }

  get changed(): PositionState[] {
    return [...this.#states].flatMap(([userId, own]) =>
      own.filter(({ number }) => number > this.#unchangedOf(userId)),
    )
  }

  get profits(): RealizedProfit[] {
    return this.#profits.rows
  }

  /** Stored states above the number were rolled back. */
  get removed(): { readonly user_id: number; readonly number: number }[] {
    return [...this.#unchanged].flatMap(([user_id, number]) =>
      number < (this.#loaded.get(user_id) ?? 0) ? [{ user_id, number }] : [],
    )
  }

  /** The newest state of an account; null if it never had a position. */
  newest(userId: number): PositionState | null {
    return this.#states.get(userId)?.at(-1) ?? null
  }
}

/** The rows of one market that touch positions. */
interface MarketTouches {
  readonly marketId: number
  readonly rows: readonly TouchRow[]
}

/** The newest states of all touched positions, by market and user, oldest first. */
async function load(tx: Tx, touches: readonly MarketTouches[]): Promise<Map<number, PositionState[]>> {
  const keys = touches.flatMap(({ marketId, rows }) => {
    const users = new Set(rows.flatMap(({ positions }) => positions.map(({ user_id }) => user_id)))
    const most = 1 + 2 * rows.filter(({ rollback }) => rollback).length
    return [...users].map((userId) => ({ userId, marketId, most }))
  })
  const { rows: states } = await sql<PositionState>`
    select s.*
    from unnest(
      ${keys.map(({ userId }) => userId)}::bigint[], ${keys.map(({ marketId }) => marketId)}::integer[],
      ${keys.map(({ most }) => most)}::integer[]
    ) k (user_id, market_id, most)
    cross join lateral (
      select * from read.position_states
      where user_id = k.user_id and market_id = k.market_id order by number desc limit k.most
    ) s
    order by s.number
  `.execute(tx)
  return Map.groupBy(states, ({ market_id }) => market_id)
}

export const positionHistory: Projection = {
  name: 'position_history',
  version: 2,
  tables: PROJECTED_TABLES.position_history,
  async project(tx, entries: readonly ShardEntry[]) {
    const touches = [...byMarket(entries)].flatMap(([marketId, own]) => {
      const rows = own.map(({ row }) => row).filter(isTouch)
      return rows.length === 0 ? [] : [{ marketId, rows }]
    })
    if (touches.length === 0) return { clauses: [] }
    const loaded = await load(tx, touches)
    const markets = touches.map(({ marketId, rows }) => {
      const own = Map.groupBy(loaded.get(marketId) ?? [], ({ user_id }) => user_id)
      const states = new PositionStates(marketId, own)
      for (const row of rows) states.apply(row)
      return { marketId, states }
    })
    return {
      clauses: [
        POSITION_STATES.replace(markets.flatMap(({ states }) => states.changed)),
        REALIZED_PROFITS.add(markets.flatMap(({ states }) => states.profits)),
      ],
      async before() {
        for (const { marketId, states } of markets)
          for (const { user_id, number } of states.removed)
            await sql`
              delete from read.position_states
              where user_id = ${user_id} and market_id = ${marketId} and number > ${number}
            `.execute(tx)
      },
    }
  },
}
