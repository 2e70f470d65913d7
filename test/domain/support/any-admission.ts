/** Generates admissions: every kind of market, position, resting orders, order and balance. */
import fc from 'fast-check'
import { priceBand } from '../../../domain/market/band.ts'
import { type MarketSpec, oneInTicks, priceOf, tickStepValue } from '../../../domain/market/market.ts'
import { type AdmissionInput, restingTotals } from '../../../domain/orders/admission.ts'
import { isAlwaysReduceOnly, isConditional, isMarketType, ORDER_TYPES } from '../../../domain/orders/order.ts'
import { reservationsOf } from '../../../domain/orders/reservation.ts'
import type { UnsizedOrder } from '../../../domain/orders/sizing.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import {
  type Address,
  type FundingIndex,
  type Millis,
  ONE,
  type Price,
  type Quote,
  type Seconds,
  type Seq,
  type Steps,
  type Ticks,
} from '../../../domain/units.ts'
import { markets } from '../../support/markets.ts'

export interface AnyAdmission {
  readonly order: UnsizedOrder
  readonly facts: AdmissionInput & { readonly oracle: Price }
}

const side = fc.constantFrom('LONG' as const, 'SHORT' as const)

/** From negative equity to well above every requirement. */
function anyPosition(spec: MarketSpec, middle: number): fc.Arbitrary<Position> {
  return fc
    .record({
      size: fc.oneof(
        fc.constant(0),
        fc.integer({ min: -3_000, max: 3_000 }),
        fc.integer({ min: -9, max: 9 }),
      ),
      off: fc.integer({ min: -5, max: 5 }),
      permille: fc.integer({ min: 20, max: 1_500 }),
      leverage: fc.integer({ min: 1, max: spec.maxLeverage }),
    })
    .map(({ size, off, permille, leverage }) => {
      if (size === 0) return FLAT
      const entry = Math.max(1, middle + off)
      const entryNotional = (BigInt(Math.abs(size)) * BigInt(entry) * tickStepValue(spec)) as Quote
      const foldedMargin = ((entryNotional * BigInt(permille)) / 1000n) as Quote
      return { size: size as Steps, entryNotional, foldedMargin, leverage }
    })
}

/** Resting orders with the reservations that the rules compute. */
function anyResting(spec: MarketSpec, { size }: Position, middle: number) {
  const one = fc.record({
    side,
    remaining: fc.integer({ min: 1, max: 2_000 }),
    limit: fc.integer({ min: Math.max(1, middle - 4), max: middle + 4 }),
    leverage: fc.integer({ min: 1, max: spec.maxLeverage }),
    reduceOnly: fc.boolean(),
  })
  return fc.array(one, { maxLength: 4 }).map((drafts) => {
    const orders = drafts.map((draft, at) => ({
      ...draft,
      seq: (at + 1) as Seq,
      remaining: draft.remaining as Steps,
      limit: draft.limit as Ticks,
      reservedPrice: draft.limit as Ticks,
    }))
    const reservations = reservationsOf(spec, size, orders)
    const reserved = orders.map((order, at) => ({
      ...order,
      openable: reservations[at]?.openable as Steps,
      reserved: reservations[at]?.amount as Quote,
    }))
    return restingTotals(spec, size, reserved)
  })
}

function anyOrder(spec: MarketSpec, middle: number): fc.Arbitrary<UnsizedOrder> {
  const top = spec.kind === 'binary_future' ? oneInTicks(spec) - 1 : middle * 2
  const near = fc.integer({
    min: Math.max(1, Math.floor(middle * 0.9)),
    max: Math.min(top, Math.ceil(middle * 1.1)),
  })
  return fc
    .record({
      side,
      type: fc.constantFrom(...ORDER_TYPES),
      price: near,
      trigger: near,
      leverage: fc.integer({ min: 1, max: spec.maxLeverage }),
      reduceOnly: fc.oneof(
        { weight: 3, arbitrary: fc.constant(false) },
        { weight: 1, arbitrary: fc.constant(true) },
      ),
    })
    .map(({ type, price, trigger, leverage, reduceOnly, ...draft }) => ({
      ...draft,
      marketId: spec.marketId,
      maker: `0x${'0a'.repeat(20)}` as Address,
      type,
      price: (isMarketType(type) ? 0 : price) as Ticks,
      trigger: (isConditional(type) ? trigger : 0) as Ticks,
      leverage,
      reduceOnly: reduceOnly || isAlwaysReduceOnly(type),
      expiration: 0 as Seconds,
      salt: 1n,
    }))
}

const MIDDLE: Readonly<Record<MarketSpec['kind'], number>> = {
  perpetual: 1000,
  future: 100,
  binary_future: 500,
}

/** Amounts of every size, from negative to more than any order needs. */
const anyAvailable = fc
  .tuple(fc.integer({ min: -3, max: 9 }), fc.bigInt({ min: 1n, max: 10n ** 4n }))
  .map(([power, digits]) => (power < 0 ? -digits : (digits * ONE * 10n ** BigInt(power)) / 10_000n) as Quote)

export const anyAdmission: fc.Arbitrary<AnyAdmission> = fc.constantFrom(...markets).chain((spec) => {
  const middle = MIDDLE[spec.kind]
  return anyPosition(spec, middle).chain((position) =>
    fc
      .record({
        order: anyOrder(spec, middle),
        resting: anyResting(spec, position, middle),
        available: anyAvailable,
        off: fc.integer({ min: -30, max: 30 }),
        index:
          spec.kind === 'perpetual' ? fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n }) : fc.constant(0n),
      })
      .map(({ order, resting, available, off, index }) => ({
        order,
        facts: {
          spec,
          mode: 'open',
          oracle: (priceOf(spec, middle as Ticks) + (BigInt(off) * spec.tick) / 10n) as Price,
          now: 1_000_000 as Millis,
          position,
          fundingIndex: index as FundingIndex,
          resting,
          available,
        },
      })),
  )
})

export const bandOf = ({ facts }: AnyAdmission) => priceBand(facts.spec, facts.oracle)
