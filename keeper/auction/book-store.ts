/** Reads a market's open and waiting orders, its open positions and its accounts in liquidation: when a keeper becomes the auction's owner, and after an error. */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { loadLiquidating } from '../../db/liquidations.ts'
import { WIDENINGS_SQL } from '../../db/orders.ts'
import { matchedPosition } from '../../db/positions.ts'
import { constant } from '../../db/values.ts'
import type { BookOrder } from '../../domain/book/market-book.ts'
import {
  ORDER_TYPES,
  type OrderStatus,
  type OrderType,
  orderIdOf,
  type Side,
} from '../../domain/orders/order.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { MarketId, Millis, Seconds, Seq, Steps, Ticks, UserId } from '../../domain/units.ts'

const SIDES = ['LONG', 'SHORT'] as const satisfies readonly Side[]
const STATUSES = ['OPEN', 'PENDING_TRIGGER'] as const satisfies readonly OrderStatus[]

/** The place of a text among the values, from 0. */
const placeIn = (values: readonly string[], column: string): string =>
  `array_position(array[${values.map((value) => `'${value}'`).join(', ')}], ${column}) - 1`

/** Everything that the book reads of an order, as numbers below 2^53. */
const COLUMNS = [
  `split_part(order_id, '-', 2)::bigint`,
  'seq',
  'user_id',
  placeIn(SIDES, 'side'),
  placeIn(ORDER_TYPES, 'type'),
  placeIn(STATUSES, 'status'),
  'price',
  'quantity',
  'filled',
  'settling',
  'leverage',
  'reduce_only::integer',
  'trigger',
  'alive_until',
  'openable',
  'reserved_price',
  'accepted_at',
  `coalesce((triggered ->> 'at')::bigint, 0)`,
  'forced::integer',
  WIDENINGS_SQL,
]

/** The columns of all orders as one list in one row: with a row each, parsing the protocol took longer than everything else. */
async function readNumbers(tx: Tx, marketId: MarketId): Promise<readonly number[]> {
  const { rows } = await sql<{ numbers: string | null }>`
    select translate(array_agg(array[${sql.raw(COLUMNS.join(', '))}]::bigint[])::text, '{}', '') as numbers
    from orders
    where market_id = ${marketId} and ended_at is null and closing_reason is null
      and status in (${sql.join(STATUSES.map(constant))})
  `.execute(tx)
  return JSON.parse(`[${rows[0]?.numbers ?? ''}]`)
}

function toBookOrder(marketId: MarketId, columns: readonly number[]): BookOrder {
  const [
    accepted,
    seq,
    account,
    side,
    type,
    status,
    price,
    quantity,
    filled,
    settling,
    leverage,
    reduceOnly,
    trigger,
    aliveUntil,
    openable,
    reservedPrice,
    acceptedAt,
    triggeredAt,
    forced,
    widenings,
  ] = columns
  return {
    orderId: orderIdOf(marketId, accepted as Seq),
    seq: seq as Seq,
    account: account as UserId,
    side: SIDES[side as number] as Side,
    type: ORDER_TYPES[type as number] as OrderType,
    status: STATUSES[status as number] as OrderStatus,
    price: price as Ticks,
    quantity: quantity as Steps,
    filled: filled as Steps,
    settling: settling as Steps,
    closingReason: null,
    leverage: leverage as number,
    reduceOnly: reduceOnly === 1,
    trigger: trigger as Ticks,
    aliveUntil: aliveUntil as Seconds,
    openable: openable as Steps,
    reservedPrice: reservedPrice as Ticks,
    acceptedAt: acceptedAt as Millis,
    triggered: triggeredAt === 0 ? null : { at: triggeredAt as number },
    forced: forced === 1,
    widenings: widenings as number,
  }
}

function* bookOrders(marketId: MarketId, numbers: readonly number[]): Generator<BookOrder> {
  for (let at = 0; at < numbers.length; at += COLUMNS.length)
    yield toBookOrder(marketId, numbers.slice(at, at + COLUMNS.length))
}

/** Matched positions other than closed ones. */
async function readPositions(tx: Tx, marketId: MarketId): Promise<ReadonlyMap<UserId, Position>> {
  const rows = await tx
    .selectFrom('positions')
    .select([
      'user_id',
      'matched_size',
      'matched_entry_notional',
      'matched_folded_margin',
      'matched_leverage',
    ])
    .where('market_id', '=', marketId)
    .where('matched_size', '<>', constant(0))
    .execute()
  return new Map(rows.map((row) => [row.user_id as UserId, matchedPosition(row)]))
}

export async function loadBook(tx: Tx, marketId: MarketId) {
  const numbers = await readNumbers(tx, marketId)
  return {
    orders: bookOrders(marketId, numbers),
    positions: await readPositions(tx, marketId),
    liquidating: await loadLiquidating(tx, marketId),
  }
}
