/** The risk limits of an order once more, slow and obvious: each rule is checked at one tick, in exact integers. */

import type { RestingOrder } from '../../../domain/book/book.ts'
import { feeOf } from '../../../domain/market/fees.ts'
import { type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import { exposureOf, isFullyCollateralised } from '../../../domain/positions/margin.ts'
import { marginOf, marginPerStep, openingBasis, type Position } from '../../../domain/positions/position.ts'
import {
  type FundingIndex,
  ONE,
  type Price,
  type Steps,
  type Ticks,
  type UserId,
} from '../../../domain/units.ts'

interface RiskInput {
  readonly spec: MarketSpec
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
}

export class SlowRisk {
  readonly #in: RiskInput
  readonly #ticks: readonly number[]

  constructor(input: RiskInput, ticks: readonly number[]) {
    this.#in = input
    this.#ticks = ticks
  }

  position(order: RestingOrder): Position {
    return this.#in.positions(order.account)
  }

  closes(order: RestingOrder): boolean {
    const { size } = this.position(order)
    return order.side === 'LONG' ? size < 0 : size > 0
  }

  openable(order: RestingOrder): number {
    const { spec, oracle, fundingIndex } = this.#in
    const position = this.position(order)
    if (order.reduceOnly || order.forced) return 0
    if (position.size !== 0 && !isFullyCollateralised(spec, position, fundingIndex)) {
      const { equity, notional } = exposureOf(spec, position, fundingIndex, oracle)
      if (equity * ONE < spec.imr * notional) return 0
    }
    const isSell = order.side === 'SHORT' && spec.kind !== 'binary_future'
    if (isSell && order.type === 'MARKET' && priceOf(spec, order.reservedPrice) < oracle) return 0
    return isSell ? this.#coveredSell(order) : order.openable
  }

  /** As many steps as can be debited at any tick of the band out of what the order holds back. */
  #coveredSell(order: RestingOrder): number {
    const { spec, oracle } = this.#in
    if (order.openable === 0) return 0
    const held = reservationPerStep(spec, order) * BigInt(order.openable)
    let covered = order.openable as number
    for (const tick of this.#ticks) {
      const basis = openingBasis(spec, order, tick as Ticks, oracle)
      const debit =
        marginPerStep(spec, basis, order.leverage) + feeOf(spec, tick as Ticks, 1 as Steps, spec.takerFee)
      while (debit * BigInt(covered) > held) covered--
    }
    return covered
  }

  isSolvent(order: RestingOrder, tick: number): boolean {
    if (!this.closes(order)) return true
    const { spec, fundingIndex } = this.#in
    const { size, entryNotional, ...rest } = this.position(order)
    const count = BigInt(Math.abs(size))
    const value = (priceOf(spec, tick as Ticks) * spec.step) / ONE
    const margin = floorDiv(marginOf({ size, entryNotional, ...rest }, fundingIndex), count)
    const entry = size > 0 ? -floorDiv(-entryNotional, count) : floorDiv(entryNotional, count)
    return size > 0 ? margin + value - entry >= 0n : margin + entry - value >= 0n
  }

  /** The opened share alone, one unit at this price: equity at the oracle price over what is at stake there. */
  isMargined(order: RestingOrder, tick: number): boolean {
    const { spec, oracle } = this.#in
    const price = priceOf(spec, tick as Ticks)
    const times = BigInt(order.leverage)
    const basis = openingBasis(spec, order, tick as Ticks, oracle)
    const gain = order.side === 'LONG' ? oracle - price : price - oracle
    const stake = order.side === 'SHORT' && spec.kind === 'binary_future' ? ONE - oracle : oracle
    if (spec.kind === 'binary_future' && order.leverage === 1) return true
    return (basis + gain * times) * ONE >= spec.imr * stake * times
  }

  isReserved(order: RestingOrder, tick: number): boolean {
    if (order.side === 'LONG') return tick <= order.reservedPrice
    return this.#in.spec.kind !== 'binary_future' || tick >= order.reservedPrice
  }
}

const floorDiv = (a: bigint, b: bigint): bigint => (a >= 0n ? a / b : -((-a + b - 1n) / b))
