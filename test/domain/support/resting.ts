/** Short words for resting orders, and a reader of tables of them: `order('A buy 100 x10')`. */
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { FLAT, foldMargin, type Position } from '../../../domain/positions/position.ts'
import {
  type FundingIndex,
  ONE,
  type Price,
  type Quote,
  type Seq,
  type Steps,
  type UserId,
} from '../../../domain/units.ts'
import { index, perpetual, rate, steps, ticks } from '../../support/markets.ts'

/** Tick 1, step 1, band 5 %, and a requirement that binds from leverage 11 on: O = 100 makes 95 to 105. */
export const roundMarket: MarketSpec = {
  ...perpetual,
  tick: ONE as Price,
  step: ONE as MarketSpec['step'],
  imr: rate('0.045'),
}

export const oracle100 = (100n * ONE) as Price
export const NO_FUNDING: FundingIndex = index(0n)

let clock = 0

/** A plain limit buy of 10 at 100 by account 1, reserved whole, unless said otherwise. Seqs count up. */
export function resting(fields: Partial<RestingOrder> = {}): RestingOrder {
  const remaining = fields.remaining ?? steps(10)
  const side = fields.side ?? 'LONG'
  const type = fields.type ?? 'LIMIT'
  const limit = type === 'MARKET' ? ticks(0) : (fields.limit ?? ticks(100))
  const holdsNothing = fields.reduceOnly === true || fields.forced === true
  return {
    seq: ++clock as Seq,
    account: 1 as UserId,
    remaining,
    leverage: 1,
    reduceOnly: fields.forced === true,
    forced: false,
    triggered: false,
    widenings: 0,
    openable: holdsNothing ? steps(0) : remaining,
    reservedPrice: side === 'LONG' && type === 'LIMIT' ? limit : ticks(1_000_000),
    expiration: 0 as RestingOrder['expiration'],
    acceptedAt: 0 as RestingOrder['acceptedAt'],
    ...fields,
    side,
    type,
    limit,
  }
}

/**
 * One order per line, by name: `A buy 101 x10`, `B sell market x6`. Accounts are numbered by line unless a line says `by 7`;
 * seqs are numbered by line. Further words: `5x` leverage, `reduce-only`, `forced`, `triggered`, `reserves 3`.
 */
export function orders(
  table: string,
): Record<string, RestingOrder> & { readonly all: readonly RestingOrder[] } {
  const rows = table
    .trim()
    .split('\n')
    .map((line) => line.trim())
  const named = rows.map((row, i) => [row.split(' ')[0] as string, orderOf(row, i + 1)] as const)
  return { ...Object.fromEntries(named), all: named.map(([, order]) => order) } as never
}

function orderOf(row: string, seq: number): RestingOrder {
  const [, side, limit] = row.split(' ')
  const number = (pattern: RegExp): number | undefined => {
    const found = pattern.exec(row)?.[1]
    return found === undefined ? undefined : Number(found)
  }
  const isMarket = limit === 'market'
  const reserves = number(/reserves (\d+)/)
  return resting({
    seq: seq as Seq,
    account: (number(/by (\d+)/) ?? seq) as UserId,
    side: side === 'buy' ? 'LONG' : 'SHORT',
    type: isMarket ? 'MARKET' : 'LIMIT',
    ...(isMarket ? {} : { limit: ticks(Number(limit)) }),
    remaining: steps(number(/ x(\d+)/) as number),
    leverage: number(/ (\d+)x/) ?? 1,
    reduceOnly: / (reduce-only|forced)/.test(row),
    forced: row.includes(' forced'),
    triggered: row.includes(' triggered'),
    ...(reserves === undefined ? {} : { openable: steps(reserves) }),
  })
}

/** A position entered at `entry` ticks with `margin` wei per step, nothing owed to funding at `at`. */
export function positionAt(
  spec: MarketSpec,
  { size, entry, margin }: { readonly size: number; readonly entry: number; readonly margin: bigint },
  at: FundingIndex = NO_FUNDING,
): Position {
  if (size === 0) return FLAT
  const count = BigInt(Math.abs(size))
  return {
    size: size as Steps,
    entryNotional: (count * BigInt(entry) * ((spec.tick * spec.step) / ONE)) as Quote,
    foldedMargin: foldMargin(margin * count, size as Steps, at),
    leverage: 1,
  }
}

export const bookOf = (all: Iterable<RestingOrder>): Book => Book.of(all)
