/** Arbitrary batches in which orders truly meet: few accounts, few prices, positions near their limits, orders of every sort. */
import fc from 'fast-check'
import type { BatchInput } from '../../../domain/auction/batch.ts'
import type { Exclusions } from '../../../domain/auction/candidates.ts'
import type { Cleared, Clearing } from '../../../domain/auction/clearing.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { type MarketSpec, oneInTicks, tickStepValue } from '../../../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { FLAT, foldMargin, type Position } from '../../../domain/positions/position.ts'
import {
  type FundingIndex,
  type Millis,
  ONE,
  type Price,
  type Quote,
  type Rate,
  type Seconds,
  type Seq,
  type Steps,
  type Ticks,
  type UserId,
} from '../../../domain/units.ts'
import { binary, future, perpetual, rate } from '../../support/markets.ts'

/** At the end of second 2000: what expires then still lives. */
export const AS_OF = 2_000_000 as Millis

/** Grids on which the band has 11 to 41 ticks, and requirements that bind in it at the higher leverages. */
const grids: readonly { readonly spec: MarketSpec; readonly middle: number }[] = [
  {
    spec: { ...perpetual, tick: ONE as Price, takerFee: rate('0.0005'), minQuantity: 1 as Steps },
    middle: 100,
  },
  { spec: { ...future, minQuantity: 1 as Steps, mtbLong: rate('0.1'), mtbShort: rate('0.15') }, middle: 100 },
  { spec: { ...binary, tick: rate('0.01') as bigint as Price }, middle: 50 },
  { spec: { ...binary, tick: rate('0.01') as bigint as Price }, middle: 12 },
  { spec: { ...binary, tick: rate('0.01') as bigint as Price, maxLeverage: 1 }, middle: 90 },
]

export interface AnyBatch {
  readonly spec: MarketSpec
  readonly orders: readonly RestingOrder[]
  readonly openPositions: ReadonlyMap<UserId, Position>
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
  readonly standingSeq: Seq
  readonly priceProtection: Rate
  readonly asOf: Millis
  readonly excluded?: Exclusions
}

export const positionsOf =
  ({ openPositions }: AnyBatch) =>
  (account: UserId): Position =>
    openPositions.get(account) ?? FLAT

/** The arbitrary positions are not those of a whole market. */
const PLENTY = (10n ** 40n) as Quote

export const toInput = (batch: AnyBatch, orders: Iterable<RestingOrder> = batch.orders): BatchInput => ({
  ...batch,
  book: Book.of(orders),
  positions: positionsOf(batch),
  pool: PLENTY,
})

export interface BatchOptions {
  readonly accounts?: number
  readonly maxOrders?: number
  readonly minOrders?: number
  readonly grid?: number
  /** The oracle price lies on a tick, and no funding is pending. */
  readonly onTick?: boolean
}

/** A batch of one of the three kinds of market. */
export function anyBatch({
  accounts = 5,
  maxOrders = 20,
  minOrders = 2,
  grid,
  onTick = false,
}: BatchOptions = {}): fc.Arbitrary<AnyBatch> {
  const anyGrid =
    grid === undefined ? fc.constantFrom(...grids) : fc.constant(grids[grid] as (typeof grids)[number])
  const spread = onTick ? fc.constant(0n) : fc.bigInt({ min: -40n, max: 40n })
  return fc
    .tuple(anyGrid, spread, fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }))
    .chain(([{ spec, middle }, off, index]) => {
      const oracle = (spec.tick * BigInt(middle) + (off * spec.tick) / 40n) as Price
      const fundingIndex = (spec.kind === 'perpetual' ? index : 0n) as FundingIndex
      const market = { spec, oracle, fundingIndex, middle }
      return fc
        .record({
          orders: fc.array(anyOrder(market, accounts), {
            minLength: minOrders,
            maxLength: maxOrders,
            size: 'max',
          }),
          seqs: fc.shuffledSubarray([...Array(maxOrders).keys()], { minLength: maxOrders }),
          positions: fc.array(anyPosition(market), { minLength: accounts, maxLength: accounts }),
          standing: fc.oneof(often(maxOrders, 3), seldom(fc.integer({ min: 0, max: maxOrders }), 2)),
          width: fc.constantFrom(1n, 1n, 2n, 5n),
        })
        .map(({ orders, seqs, positions, standing, width }) => {
          const openPositions = new Map(positions.map((position, i) => [(i + 1) as UserId, position]))
          const numbered = orders.map((order, i) => ({ ...order, seq: (1 + (seqs[i] as number)) as Seq }))
          const all = numbered.map((order) =>
            withUnused(aimed(order, openPositions.get(order.account) ?? FLAT)),
          )
          const priceProtection = (DEFAULT_PRICE_PROTECTION[spec.kind] * width) as Rate
          const standingSeq = standing as Seq
          const inputs = { standingSeq, priceProtection, asOf: AS_OF }
          return { spec, oracle, fundingIndex, ...inputs, orders: all, openPositions }
        })
    })
}

/** Some limit orders have replaced others of which a part was filled. */
const withUnused = (order: RestingOrder): RestingOrder =>
  order.type === 'LIMIT' && order.seq % 5 === 0 ? { ...order, unused: 3 as Steps } : order

/** A forced order closes a position; most reduce-only orders do. */
function aimed(order: RestingOrder, { size }: Position): RestingOrder {
  const isAimed = order.forced || (order.reduceOnly && order.seq % 3 !== 0)
  return isAimed && size !== 0 && order.type === 'MARKET'
    ? { ...order, side: size > 0 ? 'SHORT' : 'LONG' }
    : order
}

interface Market {
  readonly spec: MarketSpec
  readonly oracle: Price
  readonly fundingIndex: FundingIndex
  readonly middle: number
}

const often = <T>(value: T, weight = 8) => ({ weight, arbitrary: fc.constant(value) })
const seldom = <T>(arbitrary: fc.Arbitrary<T>, weight = 1) => ({ weight, arbitrary })

/** Limits around the middle, some on and beyond the band's edges. */
function anyLimit({ spec, oracle, middle }: Market): fc.Arbitrary<Ticks> {
  const { lo, hi } = priceBand(spec, oracle)
  const top = spec.kind === 'binary_future' ? oneInTicks(spec) - 1 : hi + 10
  const within = (min: number, max: number) =>
    fc.integer({ min: Math.max(1, min), max: Math.max(1, Math.min(max, top)) }).map((tick) => tick as Ticks)
  return fc.oneof(
    { weight: 6, arbitrary: within(middle - 3, middle + 3) },
    { weight: 3, arbitrary: within(lo, hi) },
    { weight: 1, arbitrary: within(lo - 6, lo + 1) },
    { weight: 1, arbitrary: within(hi - 1, hi + 6) },
  )
}

function anyOrder(market: Market, accounts: number): fc.Arbitrary<RestingOrder> {
  const { spec } = market
  const leverages = [1, 1, 2, 3, 4, 5, 10, 15, 20].filter((leverage) => leverage <= spec.maxLeverage)
  return fc
    .record({
      account: fc.integer({ min: 1, max: accounts }),
      side: fc.constantFrom('LONG' as const, 'SHORT' as const),
      type: fc.oneof(often('LIMIT' as const, 5), often('MARKET' as const, 2)),
      limit: anyLimit(market),
      remaining: fc.oneof(seldom(fc.constant(1)), seldom(fc.integer({ min: 1, max: 12 }), 5)),
      leverage: fc.constantFrom(...leverages),
      reduceOnly: fc.oneof(often(false, 3), often(true, 1)),
      isTriggered: fc.oneof(often(false, 5), often(true, 1)),
      widenings: fc.integer({ min: 0, max: 3 }),
      isForced: fc.oneof(often(false, 9), often(true, 1)),
      reserves: fc.oneof(often(1, 7), often(0, 1), seldom(fc.double({ min: 0, max: 1, noNaN: true }))),
      reservedOff: fc.oneof(
        often(0, 6),
        seldom(fc.integer({ min: TRIPLED, max: 3 }), 2),
        seldom(fc.constant(TRIPLED), 1),
      ),
      expiration: fc.oneof(often(0), seldom(fc.constantFrom(1999, 2000, 2001))),
      acceptedAt: fc.oneof(
        often(AS_OF - 200, 10),
        seldom(fc.constantFrom(AS_OF, AS_OF - 1999, AS_OF - 2000)),
      ),
    })
    .map((draft) => toOrder(market, draft))
}

interface Draft {
  readonly account: number
  readonly side: 'LONG' | 'SHORT'
  readonly type: 'MARKET' | 'LIMIT'
  readonly limit: Ticks
  readonly remaining: number
  readonly leverage: number
  readonly reduceOnly: boolean
  readonly isForced: boolean
  readonly isTriggered: boolean
  readonly widenings: number
  readonly reserves: number
  readonly reservedOff: number
  readonly expiration: number
  readonly acceptedAt: number
}

function toOrder({ spec, oracle }: Market, draft: Draft): RestingOrder {
  const { side, remaining } = draft
  const forced = draft.isForced && draft.type === 'MARKET'
  const reduceOnly = draft.reduceOnly || forced
  const limit = draft.type === 'MARKET' ? (0 as Ticks) : draft.limit
  return {
    seq: 0 as Seq,
    account: draft.account as UserId,
    side,
    type: draft.type,
    limit,
    remaining: remaining as Steps,
    leverage: draft.leverage,
    reduceOnly,
    forced,
    triggered: !forced && draft.isTriggered,
    widenings: forced ? draft.widenings : 0,
    openable: (reduceOnly ? 0 : Math.round(draft.reserves * remaining)) as Steps,
    reservedPrice: reservedPrice(spec, oracle, side, limit, draft.reservedOff),
    expiration: draft.expiration as Seconds,
    acceptedAt: draft.acceptedAt as Millis,
  }
}

/** As far off as that stands for a market that has tripled while a sell rested: its allowance does not reach the band's edge any more. */
const TRIPLED = -12

/** As at acceptance, with the band that was then `off` ticks away from where it is now. */
function reservedPrice(
  spec: MarketSpec,
  oracle: Price,
  side: 'LONG' | 'SHORT',
  limit: Ticks,
  off: number,
): Ticks {
  const { lo, hi } = priceBand(spec, oracle)
  const isBinary = spec.kind === 'binary_future'
  if (limit > 0 && (side === 'LONG' || isBinary)) return limit
  if (limit > 0 && off === TRIPLED) return Math.max(1, Math.floor(hi / 3)) as Ticks
  const edge = side === 'SHORT' && isBinary ? lo - off : hi + off
  return Math.max(1, Math.max(edge, limit)) as Ticks
}

/** Flat, sound, or anything from under water to just above the requirement. */
function anyPosition({ spec, oracle, fundingIndex, middle }: Market): fc.Arbitrary<Position> {
  const isBinary = spec.kind === 'binary_future'
  const top = isBinary ? oneInTicks(spec) - 1 : middle + 15
  return fc
    .record({
      size: fc.oneof(often(0, 2), seldom(fc.integer({ min: -15, max: 15 }), 5)),
      entry: fc.integer({ min: Math.max(1, middle - 15), max: Math.min(top, middle + 15) }),
      dust: fc.bigInt({ min: 0n, max: 12n }),
      ratio: fc.oneof(
        seldom(fc.integer({ min: -40, max: 60 }), 2),
        seldom(fc.integer({ min: 60, max: 250 }), 2),
        seldom(fc.integer({ min: 250, max: 1200 })),
      ),
    })
    .map(({ size, entry, dust, ratio }) => {
      if (size === 0) return FLAT
      const count = BigInt(Math.abs(size))
      const entryNotional = count * BigInt(entry) * tickStepValue(spec) + dust
      const value = (count * oracle * spec.step) / ONE
      const stake = isBinary && size < 0 ? count * spec.step - value : value
      const gain = size > 0 ? value - entryNotional : entryNotional - value
      const margin = (stake * BigInt(ratio)) / 1000n - gain
      return {
        size: size as Steps,
        entryNotional: entryNotional as Quote,
        foldedMargin: foldMargin(margin, size as Steps, fundingIndex),
        leverage: 1,
      }
    })
}

export const isCleared = (clearing: Clearing): clearing is Cleared => clearing.outcome === 'cleared'

/** For comparing: bigints as text, inputs left out. */
export const outcomeOf = ({ inputs: _, ...rest }: Clearing): string =>
  JSON.stringify(rest, (_key, value) => (typeof value === 'bigint' ? `${value}n` : value))
