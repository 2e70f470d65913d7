/** The `orders` table: every statement that inserts, changes or ends orders. The caller holds the lock of the market's shard. */
import { CompiledQuery, type Selectable, sql } from 'kysely'
import type { OrderPlaced } from '../domain/journal/journal-row.ts'
import type { OpenOrder } from '../domain/orders/open-order.ts'
import type { SignedOrder } from '../domain/orders/order.ts'
import type { ClosingReason } from '../domain/orders/order-state.ts'
import type {
  Address,
  MarketId,
  Millis,
  OrderHash,
  Quote,
  Seconds,
  Seq,
  Steps,
  Ticks,
  UserId,
} from '../domain/units.ts'
import type { Tx } from './client.ts'
import { toJson } from './json.ts'
import type { Statement } from './round-trip.ts'
import type { OrdersTable } from './schema.ts'
import { anyOf } from './values.ts'

export type OrderRow = Selectable<OrdersTable>

export const toOpenOrder = (row: OrderRow): OpenOrder => ({
  orderId: row.order_id,
  seq: row.seq as Seq,
  account: row.user_id as UserId,
  maker: row.maker as Address,
  salt: BigInt(row.salt),
  side: row.side,
  type: row.type,
  price: row.price as Ticks,
  quantity: row.quantity as Steps,
  leverage: row.leverage,
  reduceOnly: row.reduce_only,
  trigger: row.trigger as Ticks,
  expiration: row.expiration as Seconds,
  aliveUntil: row.alive_until as Seconds,
  triggered: row.triggered,
  acceptedAt: row.accepted_at as Millis,
  status: row.status,
  statusReason: row.status_reason,
  filled: row.filled as Steps,
  settling: row.settling as Steps,
  closingReason: row.closing_reason as ClosingReason | null,
  closedBy: row.closed_by,
  openable: row.openable as Steps,
  reservedPrice: row.reserved_price as Ticks,
  reserved: row.reserved as Quote,
  held: row.held as Quote,
  partialSlot: row.partial_slot,
  forced: row.forced,
  endedAt: row.ended_at as Millis | null,
})

/** Requires an order that is not forced. */
export const toSignedOrder = (row: OrderRow): SignedOrder => ({
  marketId: row.market_id as MarketId,
  maker: row.maker as Address,
  side: row.side,
  type: row.type,
  price: row.price as Ticks,
  quantity: row.quantity as Steps,
  trigger: row.trigger as Ticks,
  leverage: row.leverage,
  reduceOnly: row.reduce_only,
  expiration: row.expiration as Seconds,
  salt: BigInt(row.salt),
  hash: row.hash as OrderHash,
  signer: row.signer as Address,
  signature: row.signature as `0x${string}`,
})

/** SQL of the batches in sequence that left an order of `orders` without a fill; 0 unless it is forced. */
export const WIDENINGS_SQL = `case when forced then coalesce((
    select l.widenings from liquidations l
    where l.market_id = orders.market_id and l.user_id = orders.user_id and l.order_id = orders.order_id
  ), 0) else 0 end`

/** Orders of the accounts in the market that have not ended, by seq. */
export async function loadLiveOrders(
  tx: Tx,
  marketId: number,
  accounts: ReadonlySet<UserId>,
): Promise<readonly (OpenOrder & { readonly widenings: number })[]> {
  if (accounts.size === 0) return []
  const rows = await tx
    .selectFrom('orders')
    .selectAll()
    .select(sql<number>`${sql.raw(WIDENINGS_SQL)}`.as('widenings'))
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .where('ended_at', 'is', null)
    .orderBy('seq')
    .execute()
  return rows.map((row) => ({ ...toOpenOrder(row), widenings: row.widenings }))
}

/** The reduce-only orders of each of the accounts in the market that have not ended; accounts without any are left out. */
export async function countReduceOnly(
  tx: Tx,
  marketId: number,
  accounts: Iterable<UserId>,
): Promise<ReadonlyMap<UserId, number>> {
  const rows = await tx
    .selectFrom('orders')
    .select(['user_id', ({ fn }) => fn.countAll<number>().as('orders')])
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .where('ended_at', 'is', null)
    .where('reduce_only', '=', true)
    .groupBy('user_id')
    .execute()
  return new Map(rows.map(({ user_id, orders }) => [user_id as UserId, Number(orders)]))
}

/** Inserts the forced orders of the rows. The caller appends the rows. */
export async function insertForced(tx: Tx, marketId: number, rows: readonly OrderPlaced[]): Promise<void> {
  if (rows.length === 0) return
  await sql`
    insert into orders (
      order_id, market_id, seq, user_id, maker, hash, salt, side, type, price, quantity, trigger, leverage, reduce_only, expiration,
      alive_until, status, openable, reserved_price, reserved, accepted_at, forced
    )
    select r.order_id, ${marketId}, r.salt, r.user_id, r.maker, r.hash, r.salt, r.side, r.type, 0, r.quantity, 0, 0, true, 0, 0, r.status,
      0, 0, 0, r.accepted_at, true
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (
      order_id text, user_id bigint, maker text, hash text, salt bigint, side text, type text, quantity bigint, status text,
      accepted_at bigint
    )
  `.execute(tx)
}

/** Orders that a cancel still ends: `isClosable`. A forced order ends only with its liquidation. */
export const CLOSABLE = sql<boolean>`
  orders.ended_at is null and not orders.forced and (
    orders.closing_reason is null or (orders.closing_reason = 'POSITION_CLOSED' and orders.status <> 'CANCEL_PENDING_FINALIZE')
  )
`

/** The columns of an order that leaves the book: it has ended, or it ends once its settling part is mined or voided. */
export interface EndedOrder {
  readonly order_id: string
  readonly status: string
  readonly status_reason: string | null
  readonly closing_reason: string | null
  /** The trader's reason for the cancel. */
  readonly note: string | null
  /** Null while the order waits for its settling part. */
  readonly ended_at: number | null
}

/** `order` as `leaveBook` returns it. */
export const toEndedOrder = (order: OpenOrder, note: string | null = null): EndedOrder => ({
  order_id: order.orderId,
  status: order.status,
  status_reason: order.statusReason,
  closing_reason: order.closingReason,
  note,
  ended_at: order.endedAt,
})

const END_ORDERS = `
  update orders o set
    status = e.status, status_reason = e.status_reason, closing_reason = e.closing_reason, note = e.note, ended_at = e.ended_at,
    openable = 0, reserved = 0, closed_by = null
  from jsonb_to_recordset($1::jsonb) as e (
    order_id text, status text, status_reason text, closing_reason text, note text, ended_at bigint
  )
  where o.order_id = e.order_id and o.order_id = any($2::text[])
`

/** Ends orders, or marks them as ending, and releases what their remainder reserves. */
export const endOrdersQuery = (ended: readonly EndedOrder[]): Statement => ({
  name: 'end-orders',
  text: END_ORDERS,
  values: [JSON.stringify(ended), ended.map(({ order_id }) => order_id)],
})

/** Ends orders as `leaveBook` returns them. The caller also changes `accounts.reserved` and appends the journal rows. */
export async function endOrders(tx: Tx, orders: readonly OpenOrder[]): Promise<void> {
  if (orders.length === 0) return
  const { text, values } = endOrdersQuery(orders.map((order) => toEndedOrder(order)))
  await tx.executeQuery(CompiledQuery.raw(text, [...values]))
}

/**
 * Writes orders as an auction or a void leaves them: matched or returned to the book, triggered, with a new reservation, or ended by the same
 * `leaveBook` as `endOrders`. One statement, because one batch may match an order and end its remainder.
 */
export async function updateOrders(tx: Tx, orders: readonly OpenOrder[]): Promise<void> {
  if (orders.length === 0) return
  await sql`
    update orders set
      status = x.status, status_reason = x."statusReason", settling = x.settling, closing_reason = x."closingReason",
      closed_by = x."closedBy", openable = x.openable, reserved_price = x."reservedPrice", reserved = x.reserved, held = x.held,
      partial_slot = x."partialSlot", ended_at = x."endedAt", seq = x.seq, triggered = x.triggered
    from jsonb_to_recordset(${toJson(orders)}::jsonb) as x(
      "orderId" text, status text, "statusReason" text, settling bigint, "closingReason" text, "closedBy" text, openable bigint,
      "reservedPrice" bigint, reserved numeric, held numeric, "partialSlot" integer, "endedAt" bigint, seq bigint, triggered jsonb
    )
    where orders.order_id = x."orderId"
  `.execute(tx)
}
