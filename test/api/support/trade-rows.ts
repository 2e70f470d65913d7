/** The journal rows of one trade in the perpetual market: matched, submitted, mined, confirmed. */

import type { BatchCleared, PartSettled, PartSubmitted } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { e18 } from '../../support/markets.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import type { ExchangeFixture, User } from './exchange-fixture.ts'

/** One side of the trade. */
export interface Leg {
  readonly orderId: string
  readonly user: User
  readonly status: 'OPEN' | 'FILLED'
}

export interface Trade {
  readonly batch: number
  /** In ticks. */
  readonly price: number
  readonly steps: number
  /** The seller is the taker. */
  readonly buy: Leg
  readonly sell: Leg
}

const part = ({ batch }: Trade) => ({ batch_id: batch, part: 1 })

function fillOf({ batch, steps }: Trade, { orderId, user }: Leg, side: 'LONG' | 'SHORT') {
  return {
    fill_id: `1-${batch}-1-${orderId.split('-')[1]}`,
    ...{ order_id: orderId, user_id: user.userId, part: 1, side, steps },
    taker_steps: side === 'SHORT' ? steps : 0,
    held: '0',
  }
}

/** Value of the trade in wei: ticks of 0.1, steps of 0.001. */
const tradedValue = ({ price, steps }: Trade): bigint => (BigInt(price) * BigInt(steps) * e18('1')) / 10_000n

export const clearedRow = (trade: Trade): BatchCleared => ({
  kind: 'batch_cleared',
  ...{
    batch_id: trade.batch,
    as_of: 2_000 * trade.batch,
    oracle_price: e18('100').toString(),
    oracle_at: 1_000,
  },
  ...{ lo: 950, hi: 1050, price: trade.price, volume: trade.steps, demand: trade.steps, supply: trade.steps },
  ...{ rule: 'volume', parts: 1, closing: [] },
  fills: [fillOf(trade, trade.buy, 'LONG'), fillOf(trade, trade.sell, 'SHORT')],
})

export const submittedRow = (trade: Trade): PartSubmitted => ({
  kind: 'part_submitted',
  ...part(trade),
  ...{ action_id: trade.batch, tx_hash: `0xabc${trade.batch}`, at: 2_000 * trade.batch + 500 },
})

/** The taker pays 5 bps. */
export function settledRow(trade: Trade, rollback = false): PartSettled {
  const settled = (leg: Leg, side: 'LONG' | 'SHORT') => {
    const { held: _, part: _part, ...fill } = fillOf(trade, leg, side)
    const fee = side === 'SHORT' ? (tradedValue(trade) * 5n) / 10_000n : 0n
    return {
      ...fill,
      ...{
        fee: fee.toString(),
        free_delta: '0',
        from_pending: '0',
        realized_pnl: '0',
        held: '0',
        matched: true,
      },
    }
  }
  const value = tradedValue(trade).toString()
  const position = ({ user }: Leg, sign: 1 | -1) => ({
    ...{ user_id: user.userId, size_delta: trade.steps * sign, leverage_before: 0, leverage_after: 1 },
    ...{ entry_notional_delta: value, folded_margin_delta: value },
  })
  const order = ({ orderId, user, status }: Leg) => ({
    ...{ order_id: orderId, user_id: user.userId, reserved_delta: '0' },
    status: rollback ? ('OPEN' as const) : status,
    reason: status === 'FILLED' && !rollback ? ('FILLED' as const) : null,
  })
  return {
    ...{
      kind: 'part_settled',
      rollback,
      ...part(trade),
      parts: 1,
      action_id: trade.batch,
      price: trade.price,
    },
    ...{ block: 7, tx_hash: `0xabc${trade.batch}`, log_index: 0, at: 2_000 * trade.batch + 1_000 },
    fills: [settled(trade.buy, 'LONG'), settled(trade.sell, 'SHORT')],
    positions: [position(trade.buy, 1), position(trade.sell, -1)],
    orders: [order(trade.buy), order(trade.sell)],
    position_closed: [],
  }
}

export const confirmedRow = (trade: Trade): JournalRow => ({
  kind: 'part_confirmed',
  ...part(trade),
  ...{ block: 7, at: 2_000 * trade.batch + 1_500 },
})

/** Appends rows to the journal of market 1. */
export const append = ({ db }: ExchangeFixture, ...rows: JournalRow[]): Promise<unknown> =>
  db.transaction().execute(async (tx) => appendRows(tx, await lockShard(tx, 'm1'), rows))
