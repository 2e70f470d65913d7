/** Orders, positions and accounts between the tables and the domain, a set at a time. */
import { type Selectable, sql } from 'kysely'
import type { Tx } from '../db/client.ts'
import { lockAccounts } from '../db/journal.ts'
import { type OrderRow, toOpenOrder } from '../db/orders.ts'
import type { PositionsTable, RelayerTransactionsTable } from '../db/schema.ts'
import type { OpenOrder } from '../domain/orders/open-order.ts'
import type { SignedOrder } from '../domain/orders/order.ts'
import type { Funds } from '../domain/orders/recompute-reservations.ts'
import type { Position } from '../domain/positions/position.ts'
import type {
  Address,
  MarketId,
  Millis,
  OrderHash,
  Quote,
  Seconds,
  Steps,
  Ticks,
  UserId,
} from '../domain/units.ts'
import type { StoredTransaction } from './relayer/ports.ts'

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

export const minedPosition = (row: Selectable<PositionsTable>): Position => ({
  size: row.size as Steps,
  entryNotional: row.entry_notional as Quote,
  foldedMargin: row.folded_margin as Quote,
  leverage: row.leverage,
})

export const matchedPosition = (row: Selectable<PositionsTable>): Position => ({
  size: row.matched_size as Steps,
  entryNotional: row.matched_entry_notional as Quote,
  foldedMargin: row.matched_folded_margin as Quote,
  leverage: row.matched_leverage,
})

/** Of those of the accounts that have one: mined or matched, as `of` says. */
export async function positionsOf(
  tx: Tx,
  marketId: MarketId,
  accounts: ReadonlySet<UserId>,
  of: (row: Selectable<PositionsTable>) => Position,
): Promise<ReadonlyMap<UserId, Position>> {
  if (accounts.size === 0) return new Map()
  const rows = await tx
    .selectFrom('positions')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('user_id', 'in', [...accounts])
    .execute()
  return new Map(rows.map((row) => [row.user_id as UserId, of(row)]))
}

const wei = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value)

/** JSON with amounts as decimal strings. */
export const toJson = (value: unknown): string => JSON.stringify(value, wei)

/** Orders of accounts in a market that have not ended, by seq. */
export async function liveOrders(
  tx: Tx,
  marketId: number,
  accounts: ReadonlySet<UserId>,
): Promise<readonly OpenOrder[]> {
  if (accounts.size === 0) return []
  const rows = await tx
    .selectFrom('orders')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('user_id', 'in', [...accounts])
    .where('ended_at', 'is', null)
    .orderBy('seq')
    .execute()
  return rows.map(toOpenOrder)
}

/** Writes the changeable columns of orders whose market's shard is locked. */
export async function writeOrders(tx: Tx, orders: readonly OpenOrder[]): Promise<void> {
  if (orders.length === 0) return
  await sql`
    update orders set
      status = x.status, status_reason = x."statusReason", settling = x.settling, closing_reason = x."closingReason",
      openable = x.openable, reserved_price = x."reservedPrice", reserved = x.reserved, held = x.held,
      partial_slot = x."partialSlot", ended_at = x."endedAt", seq = x.seq, triggered = x.triggered
    from jsonb_to_recordset(${toJson(orders)}::jsonb) as x(
      "orderId" text, status text, "statusReason" text, settling bigint, "closingReason" text, openable bigint,
      "reservedPrice" bigint, reserved numeric, held numeric, "partialSlot" integer, "endedAt" bigint, seq bigint, triggered jsonb
    )
    where orders.order_id = x."orderId"
  `.execute(tx)
}

/** Writes the matched columns of positions. */
export async function writeMatched(
  tx: Tx,
  marketId: number,
  positions: ReadonlyMap<UserId, Position>,
): Promise<void> {
  if (positions.size === 0) return
  const rows = [...positions].map(([account, position]) => ({ account, ...position }))
  await sql`
    insert into positions
      (user_id, market_id, matched_size, matched_entry_notional, matched_folded_margin, matched_leverage)
    select x.account, ${marketId}, x.size, x."entryNotional", x."foldedMargin", x.leverage
    from jsonb_to_recordset(${toJson(rows)}::jsonb) as x(
      account bigint, size bigint, "entryNotional" numeric, "foldedMargin" numeric, leverage integer
    )
    on conflict (user_id, market_id) do update set
      matched_size = excluded.matched_size, matched_entry_notional = excluded.matched_entry_notional,
      matched_folded_margin = excluded.matched_folded_margin, matched_leverage = excluded.matched_leverage
  `.execute(tx)
}

/** Changes what locked accounts hold back. */
export async function addReserved(tx: Tx, deltas: ReadonlyMap<UserId, Quote>): Promise<void> {
  if (deltas.size === 0) return
  const rows = [...deltas].map(([account, delta]) => ({ account, delta }))
  await sql`
    update accounts set reserved = accounts.reserved + x.delta
    from jsonb_to_recordset(${toJson(rows)}::jsonb) as x(account bigint, delta numeric)
    where accounts.user_id = x.account
  `.execute(tx)
}

/** Locks accounts and tells what they can pay with. */
export async function lockFunds(tx: Tx, accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Funds>> {
  const rows = await lockAccounts(tx, accounts)
  return new Map(
    rows.map((row) => [row.user_id as UserId, { free: row.free as Quote, reserved: row.reserved as Quote }]),
  )
}

export const toTransaction = (row: Selectable<RelayerTransactionsTable>): StoredTransaction => ({
  hash: row.tx_hash,
  raw: row.raw as `0x${string}`,
  nonce: row.nonce,
  purpose: row.purpose,
  status: row.status,
  block: row.block,
  error: row.error,
  signedAt: row.signed_at as Millis,
  broadcastAt: row.broadcast_at as Millis | null,
})
