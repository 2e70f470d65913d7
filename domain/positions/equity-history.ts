/**
 * Equity of an account over time. Per interval, to the wei: equity change = deposits - withdrawals + realized profits -
 * fees + funding + change of unrealized profits.
 */
import type { MarketSpec } from '../market/market.ts'
import { fundingPayment } from '../prices/funding-payment.ts'
import type { FundingIndex, Price, Quote, Steps } from '../units.ts'
import { equityOf } from './margin.ts'

/** Sums of events. `funding`: funding received by positions when their sizes changed. */
export interface EquityFlows {
  readonly deposits: bigint
  readonly withdrawals: bigint
  readonly realizedPnl: bigint
  readonly fees: bigint
  readonly funding: bigint
}

export const NO_FLOWS: EquityFlows = {
  deposits: 0n,
  withdrawals: 0n,
  realizedPnl: 0n,
  fees: 0n,
  funding: 0n,
}

export const addFlows = (a: EquityFlows, b: EquityFlows): EquityFlows => ({
  deposits: a.deposits + b.deposits,
  withdrawals: a.withdrawals + b.withdrawals,
  realizedPnl: a.realizedPnl + b.realizedPnl,
  fees: a.fees + b.fees,
  funding: a.funding + b.funding,
})

const netOf = ({ deposits, withdrawals, realizedPnl, fees, funding }: EquityFlows): bigint =>
  deposits - withdrawals + realizedPnl - fees + funding

/** A position at a time at which its market's funding index was `index`. */
export interface HeldPosition {
  readonly size: Steps
  readonly entryNotional: Quote
  /** Funding index up to which the flows include its funding. */
  readonly fundedTo: FundingIndex
  readonly index: FundingIndex
  /** Null: no price was published before that time, so the position is valued at its entry. */
  readonly price: Price | null
}

/** Position values beyond the flows. */
export interface PositionValue {
  readonly unrealizedPnl: bigint
  /** Funding since the sizes last changed. */
  readonly accruedFunding: bigint
}

export const NO_VALUE: PositionValue = { unrealizedPnl: 0n, accruedFunding: 0n }

export const addValues = (a: PositionValue, b: PositionValue): PositionValue => ({
  unrealizedPnl: a.unrealizedPnl + b.unrealizedPnl,
  accruedFunding: a.accruedFunding + b.accruedFunding,
})

/** Profit is rounded down to the wei, as in the equity of a position. */
export function valueHeld(spec: MarketSpec, held: HeldPosition): PositionValue {
  const { size, entryNotional, fundedTo, index, price } = held
  const unfunded = { size, entryNotional, foldedMargin: 0n as Quote, leverage: 0 }
  return {
    unrealizedPnl: price === null ? 0n : equityOf(spec, unfunded, 0n as FundingIndex, price),
    accruedFunding: fundingPayment(size, fundedTo, index),
  }
}

/** The events of an interval, and the value of the positions at its end. */
export interface EquityInterval {
  readonly flows: EquityFlows
  readonly value: PositionValue
}

export interface EquityPoint extends EquityFlows {
  /** Free balance plus position margins. */
  readonly balance: bigint
  readonly unrealizedPnl: bigint
  readonly equity: bigint
}

/**
 * One point per interval, in order. `before`: all flows before the first interval, and the value at its start.
 */
export function equityPoints(before: EquityInterval, intervals: readonly EquityInterval[]): EquityPoint[] {
  let net = netOf(before.flows)
  let { accruedFunding } = before.value
  return intervals.map(({ flows, value }) => {
    const funding = flows.funding + value.accruedFunding - accruedFunding
    net += netOf(flows)
    accruedFunding = value.accruedFunding
    const balance = net + accruedFunding
    return {
      ...flows,
      funding,
      balance,
      unrealizedPnl: value.unrealizedPnl,
      equity: balance + value.unrealizedPnl,
    }
  })
}
