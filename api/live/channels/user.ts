/** `user`: the orders, fills, positions, balance, transactions and adjustments of the caller's account. */
import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { type FeedBalance, userHead } from '../../../db/feed-schema.ts'
import type { ReadPositionsTable } from '../../../db/read-schema.ts'
import type { Steps } from '../../../domain/units.ts'
import { attemptsOfUser } from '../../adjustments/query.ts'
import { attemptView } from '../../adjustments/view.ts'
import { fillsOfUser } from '../../fills/query.ts'
import { fillView } from '../../fills/view.ts'
import type { OrderRow } from '../../orders/view.ts'
import { orderView } from '../../orders/view.ts'
import type { ReadScope } from '../../read-after/completeness.ts'
import { transactionView } from '../../transactions/view.ts'
import { amount, isoTime } from '../../wire/amounts.ts'
import type { Channel, ChannelSpecs } from '../channel.ts'
import type { FeedRow } from '../feed-row.ts'

/** Maximum fills, transactions and adjustments in a snapshot, newest first. */
export const USER_FILLS = 100

const SCOPE: ReadScope = {
  tables: [
    'read.orders',
    'read.fills',
    'read.positions',
    'read.balances',
    'read.ledger_transactions',
    'read.adjustment_attempts',
  ],
}

/** Settled fields of a position. Its value is not part of the account's feed, because it changes with each price. */
const positionView = (specs: ChannelSpecs, row: Selectable<ReadPositionsTable>) => {
  const spec = specs.of(row.market_id)
  const quantity = (steps: number): bigint => BigInt(steps) * spec.step
  return {
    market_id: row.market_id,
    symbol: spec.symbol,
    side: row.size === 0 ? null : row.size > 0 ? 'LONG' : 'SHORT',
    ...amount('size', quantity(row.size as Steps)),
    ...amount('pending_size', quantity(row.pending)),
    ...amount('entry_notional', row.entry_notional),
    leverage: row.leverage,
    ...amount('realized_pnl', row.realized_pnl),
    ...amount('fees', row.fees),
    updated_at: isoTime(row.updated_at),
  }
}

const balanceView = ([, free, reserved, pending]: FeedBalance) => ({
  ...amount('available', BigInt(free) - BigInt(reserved)),
  ...amount('free', BigInt(free)),
  ...amount('reserved', BigInt(reserved)),
  ...amount('pending_withdrawals', BigInt(pending)),
})

export function userChannel(userId: number, specs: ChannelSpecs): Channel {
  const symbolOf = (marketId: number | null): string | null =>
    marketId === null ? null : specs.of(marketId).symbol
  // An order's effective price is left out, because it changes with the oracle price.
  const ordersView = (rows: readonly OrderRow[]) =>
    rows.map((row) => orderView(specs.of(row.market_id), row, null))

  return {
    head: userHead(userId),
    scope: SCOPE,
    isConflatable: false,
    pacing: 'none',
    hasBookmark: true,
    async snapshot(tx) {
      const rows = await accountRows(tx, userId)
      for (const list of [rows.orders, rows.fills, rows.positions, rows.transactions]) await specs.load(list)
      return {
        user_id: userId,
        orders: ordersView(rows.orders),
        fills: rows.fills.map((row) => fillView(specs.of(row.market_id), row)),
        positions: rows.positions.map((row) => positionView(specs, row)),
        balance: balanceView(rows.balance),
        transactions: rows.transactions.map((row) =>
          transactionView({ ...row, funding_payment_delta: null }, symbolOf(row.market_id)),
        ),
        adjustments: rows.adjustments.map(attemptView),
      }
    },
    update: ([row]) => changesOf(row as FeedRow),
  }

  /** The lists that the row changes. Clients apply `removed_…` lists first. */
  function changesOf(row: FeedRow): object {
    const { orders, fills, positions, transactions, removedTransactions, adjustments, balance } =
      row.ofAccount(userId)
    // Every account of the row gets removed parts. They are rare: only fills that are known from the chain alone cause them.
    const { removedParts = [] } = row.changes
    return {
      user_id: userId,
      ...(orders.length > 0 && { orders: ordersView(orders) }),
      ...(removedParts.length > 0 && {
        removed_parts: removedParts.map((part) => ({ market_id: row.marketId, ...part })),
      }),
      ...(fills.length > 0 && { fills: fills.map((fill) => fillView(specs.of(fill.market_id), fill)) }),
      ...(positions.length > 0 && { positions: positions.map((each) => positionView(specs, each)) }),
      ...(balance !== null && { balance: balanceView(balance) }),
      ...(removedTransactions.length > 0 && {
        removed_transactions: removedTransactions.map(({ id }) => id),
      }),
      ...(transactions.length > 0 && {
        transactions: transactions.map((each) =>
          transactionView({ ...each, funding_payment_delta: null }, symbolOf(each.market_id)),
        ),
      }),
      ...(adjustments.length > 0 && { adjustments: adjustments.map(attemptView) }),
    }
  }
}

async function accountRows(tx: Tx, userId: number) {
  const orders = await tx
    .selectFrom('read.orders')
    .selectAll()
    .where('user_id', '=', userId)
    // The same predicate as the index `read_orders_live`.
    .where(sql<boolean>`status in ('OPEN', 'PENDING_TRIGGER', 'CANCEL_PENDING_FINALIZE')`)
    .orderBy('accepted_at')
    .orderBy('order_id')
    .execute()
  const fills = await fillsOfUser(tx, userId, { limit: USER_FILLS, cursor: null })
  const positions = await tx
    .selectFrom('read.positions')
    .selectAll()
    .where('user_id', '=', userId)
    .where((where) => where.or([where('size', '!=', 0), where('pending', '!=', 0)]))
    .orderBy('market_id')
    .execute()
  const balances = await sql<{ balance: FeedBalance }>`
    select json_build_array(user_id, free::text, reserved::text, pending_withdrawal::text) as balance
    from read.balances where user_id = ${userId}
  `.execute(tx)
  const transactions = await tx
    .selectFrom('read.ledger_transactions')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(USER_FILLS)
    .execute()
  const adjustments = await attemptsOfUser(tx, userId, { limit: USER_FILLS, from: null, to: null })
  const balance: FeedBalance = balances.rows[0]?.balance ?? [userId, '0', '0', '0']
  return { orders, fills: fills.slice(0, USER_FILLS), positions, balance, transactions, adjustments }
}
