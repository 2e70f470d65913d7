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
  /** Steps closed beyond the needed steps. */
  readonly over: number
  readonly legs: number
}

/** Violations that a run reports in full. */
const MOST_VIOLATIONS = 20

/** Amounts are wei. Mutable. */
export class Tally {
  readonly violations: string[] = []
  /** Number of checks and of violations, by law. */
  readonly checks = new Map<Law, { checked: number; broken: number }>()
  /** Number of ladder steps by kind. */
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
  /** Loss of forced fills against the oracle price, and the largest loss of one fill as a fraction of the price. */
  slippage = 0n
  worstSlippage = 0
  inheritedNotional = 0n
  inheritances = 0
  deleveragedNotional = 0n
  deleveragedLegs = 0
  /** Loss of counterparties of positions without equity against the oracle price, and the deficits that it covered. */
  forgone = 0n
  covered = 0n
  /** Gain of counterparties of positions with equity against the oracle price. */
  gained = 0n
  /** Maximum steps that one deleveraging closed beyond the needed steps. */
  overDeleveraged = 0

  /** `found`: describes the violation. */
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

  /**
   * Checks that a single action fails only because the backstop's free balance has changed since its decision. `error`:
   * null if executed.
   */
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
