/** Comparisons of a state with the write side: each table, by the columns that a state has. */
import type { ExchangeState } from '../../domain/exchange/state.ts'
import type { OrderRow } from '../../domain/exchange/tables/orders.ts'
import { orderIdOf } from '../../domain/orders/order.ts'
import { chainComparisons } from './chain-comparisons.ts'
import type { Columns, Comparison, Facts } from './facts.ts'

function facts<Row>(
  rows: Iterable<Row>,
  keyOf: (row: Row) => string | number,
  columnsOf: (row: Row) => Columns,
): Facts {
  return new Map([...rows].map((row) => [String(keyOf(row)), columnsOf(row)]))
}

const same = (row: object): Columns => row as Columns

const users: Comparison = {
  name: 'users',
  async stored(tx) {
    const rows = await tx.selectFrom('users').select(['user_id', 'address', 'created_at']).execute()
    return facts(rows, ({ user_id }) => user_id, same)
  },
  held: (state) =>
    facts(
      state.users.rows(),
      ({ userId }) => userId,
      ({ userId, address, createdAt }) => ({ user_id: userId, address, created_at: createdAt }),
    ),
}

function orderColumns(state: ExchangeState, order: OrderRow): Columns {
  const orderId = orderIdOf(order.marketId, order.accepted)
  const signed = state.signatures.need(order.marketId, order.accepted)
  const { note = null, closedBy = null, triggered = null } = state.orderNotes.get(orderId) ?? {}
  return {
    order_id: orderId,
    market_id: order.marketId,
    seq: order.seq,
    user_id: order.account,
    maker: state.users.need(order.account).address,
    signer: signed.signer,
    hash: signed.hash,
    signature: signed.signature,
    salt: order.salt,
    side: order.side,
    type: order.type,
    price: order.price,
    quantity: order.quantity,
    trigger: order.trigger,
    leverage: order.leverage,
    reduce_only: order.reduceOnly,
    expiration: order.expiration,
    alive_until: order.aliveUntil,
    status: order.status,
    status_reason: order.statusReason,
    note,
    filled: order.filled,
    settling: order.settling,
    closing_reason: order.closingReason,
    closed_by: closedBy,
    openable: order.openable,
    reserved_price: order.reservedPrice,
    reserved: order.reserved,
    held: order.held,
    partial_slot: order.partialSlot,
    accepted_at: order.acceptedAt,
    triggered,
    ended_at: order.endedAt,
    forced: order.forced,
    client_order_id: signed.clientOrderId,
    time_in_force: order.timeInForce,
    post_only: order.postOnly,
    unused: order.unused,
    bracket: order.bracket,
    replaces: order.replaces === 0 ? null : orderIdOf(order.marketId, order.replaces),
    builder: signed.builder,
  }
}

/** Columns that the table has as they were when the order was accepted, triggered or began to close, until it ends. */
const FROM_THE_END = [
  'status',
  'status_reason',
  'filled',
  'settling',
  'openable',
  'reserved_price',
  'reserved',
  'held',
  'partial_slot',
]

const withoutLive = (columns: Columns): Columns =>
  columns.ended_at === null
    ? Object.fromEntries(Object.entries(columns).filter(([name]) => !FROM_THE_END.includes(name)))
    : columns

const orders: Comparison = {
  name: 'orders',
  async stored(tx) {
    const rows = await tx.selectFrom('orders').selectAll().execute()
    return facts(
      rows,
      ({ order_id }) => order_id,
      (row) => withoutLive(same(row)),
    )
  },
  held: (state) =>
    facts(
      state.orders.rows(),
      ({ marketId, accepted }) => orderIdOf(marketId, accepted),
      (order) => withoutLive(orderColumns(state, order)),
    ),
}

const batches: Comparison = {
  name: 'batches',
  async stored(tx) {
    const rows = await tx
      .selectFrom('batches')
      .select(['market_id', 'batch_id', 'as_of', 'price', 'parts', 'oracle_price', 'oracle_at'])
      .select(['oracle_signatures', 'maker_fee', 'taker_fee', 'status'])
      .execute()
    return facts(rows, ({ market_id, batch_id }) => `${market_id}-${batch_id}`, same)
  },
  held: (state) => facts(state.batches.rows(), ({ market_id, batch_id }) => `${market_id}-${batch_id}`, same),
}

const actions: Comparison = {
  name: 'actions',
  async stored(tx) {
    const rows = await tx
      .selectFrom('actions')
      .select(['market_id', 'queue_no', 'kind', 'batch_id', 'part', 'payload', 'touches', 'as_of'])
      .select(['status', 'action_id', 'relayer', 'nonce', 'failure'])
      .execute()
    return facts(
      rows,
      ({ market_id, queue_no }) => `${market_id}-${queue_no}`,
      (row) => ({ ...row, touches: row.touches.map(Number) }),
    )
  },
  held: (state) => facts(state.actions.rows(), ({ market_id, queue_no }) => `${market_id}-${queue_no}`, same),
}

const MARKET_COLUMNS = [
  ...(['market_id', 'spec', 'mode', 'terms', 'fee_periods', 'price_protection'] as const),
  ...(['next_price_protection', 'next_price_protection_at', 'impact_notional', 'calendar'] as const),
  ...(['final_report', 'ended', 'expires_at', 'settling_at', 'dispute_window', 'backstop'] as const),
  ...(['backstop_cap', 'last_batch_id', 'last_batch_head', 'last_as_of', 'last_price'] as const),
  ...(['last_price_at', 'last_action_id', 'held_mark', 'reserved_fee', 'reserving_after'] as const),
] as const

const markets: Comparison = {
  name: 'markets',
  async stored(tx) {
    const rows = await tx.selectFrom('markets').select(MARKET_COLUMNS).execute()
    return facts(rows, ({ market_id }) => market_id, same)
  },
  held: (state) =>
    facts(
      state.markets.rows(),
      ({ market_id }) => market_id,
      (market) => {
        const progress = state.progress.need(market.market_id)
        return {
          ...market,
          last_batch_id: progress.lastBatchId,
          last_batch_head: progress.lastBatchHead,
          last_as_of: progress.lastAsOf,
          last_price: progress.lastPrice,
          last_price_at: progress.lastPriceAt,
          last_action_id: progress.lastActionId,
          held_mark: progress.isMarkHeld ? progress.heldMark : null,
          reserved_fee: progress.reservedFee,
          reserving_after: progress.reservingAfter,
        }
      },
    ),
}

export const COMPARISONS: readonly Comparison[] = [
  users,
  orders,
  batches,
  actions,
  markets,
  ...chainComparisons,
]
