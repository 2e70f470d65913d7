/** Counts the events of a scenario and the broken rules. */

import { type MarketSpec, notionalAt, priceOf } from '../domain/market/market.ts'
import type { Side } from '../domain/orders/order.ts'
import type { LadderStep } from '../domain/risk/ladder.ts'
import { INHERITANCE_FAILURES } from '../domain/risk/risk-replay.ts'
import type { Price, Steps, Ticks } from '../domain/units.ts'
import type { ChainAction } from './chain.ts'
import type { Law } from './laws.ts'

const EXPECTED: Readonly<Record<ChainAction['kind'], readonly string[]>> = {
  part: [],
  fund: [],
  inherit: INHERITANCE_FAILURES,
  deleverage: ['BackstopFirst'],
}

interface ForcedFill {
  readonly side: Side
  readonly price: Ticks
  readonly steps: Steps
}

interface Deleveraged {
  readonly notional: bigint
  /** Payout to counterparties at the oracle price, less their actual payout; negative if they are paid more. */
  readonly forgone: bigint
  /** Negative equity of the closed share at the oracle price; 0 if it had equity. */
  readonly deficit: bigint
  /** Steps beyond what was needed. */
  readonly over: number
  readonly legs: number
}

/** Violations that a run reports in full. */
const MOST_VIOLATIONS = 20

/** Amounts are wei. Mutable. */
export class Tally {
  readonly violations: string[] = []
  /** How often each law was checked, and broken. */
  readonly checks = new Map<Law, { checked: number; broken: number }>()
  /** Steps of the ladder by kind. */
  readonly steps = new Map<LadderStep['kind'], number>()
  liquidations = 0
  batches = 0
  /** Orders that ended because their account could not pay for them any more. */
  unaffordable = 0
  /** Fills that waited because the pool could not pay them. */
  poolShort = 0
  unresolved = 0
  failedSteps = 0
  forcedNotional = 0n
  forcedFills = 0
  /** Loss of the forced fills against the oracle price, and the largest of one as a fraction. */
  slippage = 0n
  worstSlippage = 0
  inheritedNotional = 0n
  inheritances = 0
  deleveragedNotional = 0n
  deleveragedLegs = 0
  /** By the counterparties of positions without equity, and the deficits that this covered. */
  forgone = 0n
  covered = 0n
  /** By the counterparties of positions with equity, beyond the oracle price. */
  gained = 0n
  /** Most steps that one deleveraging closed beyond what was needed. */
  overDeleveraged = 0

  /** `found`: what breaks the law. */
  check(law: Law, isKept: boolean, found: () => string): void {
    const count = this.checks.get(law) ?? { checked: 0, broken: 0 }
    this.checks.set(law, count)
    count.checked++
    if (isKept) return
    count.broken++
    if (this.violations.length < MOST_VIOLATIONS) this.violations.push(`${law}: ${found()}`)
  }

  decided(kind: LadderStep['kind']): void {
    this.steps.set(kind, (this.steps.get(kind) ?? 0) + 1)
  }

  /** A single action may fail only because the backstop's free balance has changed since it was decided. `error`: null if it is executed. */
  executed(action: ChainAction, error: string | null): void {
    const mayFail = error === null || EXPECTED[action.kind].includes(error)
    this.check('accepted', mayFail, () => `a ${action.kind} fails with ${error}`)
    if (error !== null && mayFail) this.failedSteps++
  }

  forced(spec: MarketSpec, { side, price, steps }: ForcedFill, oracle: Price): void {
    const distance = side === 'SHORT' ? oracle - priceOf(spec, price) : priceOf(spec, price) - oracle
    const notional = notionalAt(spec, price, steps)
    this.forcedFills++
    this.forcedNotional += notional
    this.slippage += (distance * BigInt(steps) * spec.step) / 10n ** 18n
    this.worstSlippage = Math.max(this.worstSlippage, Number(distance) / Number(oracle))
  }

  inherited(notional: bigint): void {
    this.inheritances++
    this.inheritedNotional += notional
  }

  deleveraged({ notional, forgone, deficit, over, legs }: Deleveraged): void {
    this.deleveragedNotional += notional
    this.deleveragedLegs += legs
    if (deficit > 0n) this.forgone += forgone
    else this.gained -= forgone
    this.covered += deficit
    this.overDeleveraged = Math.max(this.overDeleveraged, over)
  }
}
