/** Funding rates drawn by the seed within the contract's bounds, for runs that the contracts repeat. */

import type { MarketSpec } from '../domain/market/market.ts'
import { type FundingRate, fundingBounds, HOUR } from '../domain/prices/funding.ts'
import type { HourlyFunding, Millis } from '../domain/units.ts'
import { type ActionMoment, NO_RATE } from './chain.ts'
import type { Random } from './random.ts'

export class FundingRates {
  readonly #running = new Map<number, { readonly rate: FundingRate; readonly index: bigint }>()

  /** Exact at every time, whatever the times of actions: rates are whole wei per millisecond. */
  indexAt(market: number, now: number): bigint {
    const { rate, index } = this.#running.get(market) ?? { rate: NO_RATE, index: 0n }
    const until = Math.min(now, rate.validUntil)
    return index + (rate.rate / BigInt(HOUR)) * BigInt(Math.max(0, until - rate.validFrom))
  }

  /** The next rate, valid from now on. */
  next(market: number, spec: MarketSpec, { asOf, oracle, index }: ActionMoment, random: Random) {
    const running = this.#running.get(market)?.rate ?? NO_RATE
    const { lowest, highest } = fundingBounds(spec, running, oracle, asOf)
    const share = BigInt(Math.round(random() * 1000))
    const drawn = lowest + ((highest - lowest) * share) / 1000n
    const rate = (drawn - (drawn % BigInt(HOUR))) as HourlyFunding
    const validUntil = (asOf + HOUR) as Millis
    this.#running.set(market, { rate: { rate, validFrom: asOf, validUntil }, index })
    return { rate, validUntil }
  }
}
