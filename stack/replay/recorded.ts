/** Parses recorded order flow of two file formats into one kind of events. Pure. */
import type { Side } from '../../domain/orders/order.ts'

/** Prices and sizes are integers × 1e18. `at` is milliseconds since an origin that the file chooses. */
export type Recorded =
  | {
      readonly kind: 'placed'
      readonly at: number
      readonly id: string
      readonly side: Side
      readonly price: bigint
      readonly size: bigint
    }
  /** Cancelled in part. */
  | { readonly kind: 'reduced'; readonly at: number; readonly id: string; readonly size: bigint }
  | { readonly kind: 'cancelled'; readonly at: number; readonly id: string }
  /** Executed against an aggressor that has no event of its own in the file. */
  | { readonly kind: 'hit'; readonly at: number; readonly id: string; readonly size: bigint }
  /** Filled completely by orders that have events of their own. */
  | { readonly kind: 'filled'; readonly at: number; readonly id: string }
  | { readonly kind: 'traded'; readonly at: number; readonly price: bigint; readonly size: bigint }

export type LineReader = (line: string) => readonly Recorded[]

const LOBSTER = 'time,type,order_id,size,price,direction'
const ORDER_LOG = 'id,timestamp,exchange.timestamp,price,volume,action,direction'

/** Chooses the reader by the file's header line. */
export function readerFor(header: string): LineReader {
  const columns = header.trim().replaceAll('"', '')
  if (columns === LOBSTER) return lobsterReader
  if (columns === ORDER_LOG) return orderLogReader()
  throw new RangeError(`unknown header "${columns}": expected "${LOBSTER}" or "${ORDER_LOG}"`)
}

/** Sizes are shares, prices USD × 10,000, times seconds. The direction is the resting order's. */
function lobsterReader(line: string): readonly Recorded[] {
  const [time, type, id, size, price, direction] = line.split(',') as Columns<6>
  const at = Math.round(Number(time) * 1000)
  const shares = BigInt(size) * 10n ** 18n
  const traded = { kind: 'traded', at, price: BigInt(price) * 10n ** 14n, size: shares } as const
  switch (type) {
    case '1':
      return [
        {
          kind: 'placed',
          at,
          id,
          side: direction === '1' ? 'LONG' : 'SHORT',
          price: traded.price,
          size: shares,
        },
      ]
    case '2':
      return [{ kind: 'reduced', at, id, size: shares }]
    case '3':
      return [{ kind: 'cancelled', at, id }]
    case '4':
      return [{ kind: 'hit', at, id, size: shares }, traded]
    case '5':
      return [traded]
    default:
      return []
  }
}

/** An order of the file that has not ended. */
interface OpenOrder {
  readonly id: string
  readonly side: Side
  readonly price: bigint
  readonly remaining: bigint | null
}

interface HalfTrade extends OpenOrder {
  readonly at: number
  readonly size: bigint | null
}

/** Two fills whose times differ by more are not one trade. */
const TRADE_WINDOW_MS = 5_000

/**
 * A volume is the order's remaining size in units of 1e-8. A trade appears as two consecutive fills of opposite sides and equal size.
 * Its price is that of the older order, which has the smaller id.
 */
function orderLogReader(): LineReader {
  const open = new Map<string, OpenOrder>()
  let half: HalfTrade | null = null

  const match = (fill: HalfTrade): readonly Recorded[] => {
    const other: HalfTrade | null = half
    if (other === null || !areOneTrade(other, fill)) {
      half = fill
      return []
    }
    half = null
    const { price } = BigInt(other.id) < BigInt(fill.id) ? other : fill
    return [{ kind: 'traded', at: fill.at, price, size: fill.size ?? other.size ?? 0n }]
  }

  return (line) => {
    const [id, timestamp, , priceText, volume, action, direction] = line
      .replaceAll('"', '')
      .split(',') as Columns<7>
    const at = Number(timestamp)
    const [side, price] = [direction === 'bid' ? 'LONG' : 'SHORT', decimal(priceText)] as const
    const remaining = BigInt(volume) * 10n ** 10n
    const before = open.get(id)?.remaining ?? null
    const size = before === null ? null : before - remaining
    open.set(id, { id, side, price, remaining })
    if (action === 'created') return [{ kind: 'placed', at, id, side, price, size: remaining }]
    if (action === 'changed') return match({ id, side, price, remaining, at, size })
    open.delete(id)
    if (remaining > 0n) return [{ kind: 'cancelled', at, id }]
    return [...match({ id, side, price, remaining, at, size }), { kind: 'filled', at, id }]
  }
}

const areOneTrade = (a: HalfTrade, b: HalfTrade): boolean =>
  a.side !== b.side &&
  b.at - a.at <= TRADE_WINDOW_MS &&
  (a.size === null || b.size === null || a.size === b.size)

const decimal = (text: string): bigint => {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(`${whole}${fraction.padEnd(18, '0')}`)
}

type Columns<N extends number> = N extends 6
  ? [string, string, string, string, string, string]
  : [string, string, string, string, string, string, string]
