/** Recorded order flow, as two kinds of files tell it, in one vocabulary. Pure: text in, events out. */
import type { Side } from '../../domain/orders/order.ts'

/** Prices and sizes are integers x 1e18; `at` is milliseconds since some beginning of the file's own. */
export type Recorded =
  | {
      readonly kind: 'placed'
      readonly at: number
      readonly id: string
      readonly side: Side
      readonly price: bigint
      readonly size: bigint
    }
  /** Made smaller by its owner. */
  | { readonly kind: 'reduced'; readonly at: number; readonly id: string; readonly size: bigint }
  | { readonly kind: 'cancelled'; readonly at: number; readonly id: string }
  /** Hit by an order that the file does not show otherwise. */
  | { readonly kind: 'hit'; readonly at: number; readonly id: string; readonly size: bigint }
  /** Filled whole by orders that the file does show. */
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

/** Sizes are shares, prices USD x 10,000, times seconds; directions are those of the resting order. */
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

/** What is known of an order of the log that is still there. */
interface Seen {
  readonly id: string
  readonly side: Side
  readonly price: bigint
  readonly remaining: bigint | null
}

interface HalfTrade extends Seen {
  readonly at: number
  readonly size: bigint | null
}

/** Two halves further apart than this are not one trade. */
const TRADE_WINDOW_MS = 5_000

/**
 * Volumes are what remains, in 1e-8. A trade shows as two fills of opposite sides and equal size, one after the other; its price is
 * that of the order that was there first, which is the smaller id.
 */
function orderLogReader(): LineReader {
  const seen = new Map<string, Seen>()
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
    const before = seen.get(id)?.remaining ?? null
    const size = before === null ? null : before - remaining
    seen.set(id, { id, side, price, remaining })
    if (action === 'created') return [{ kind: 'placed', at, id, side, price, size: remaining }]
    if (action === 'changed') return match({ id, side, price, remaining, at, size })
    seen.delete(id)
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
