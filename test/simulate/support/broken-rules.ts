/** Rules of the exchange, each broken in one way, and the law that must notice it. */

import { type BatchInput, clearAndMatch } from '../../../domain/auction/batch.ts'
import { exposureOf, isRatioAtLeast } from '../../../domain/positions/margin.ts'
import type { Position } from '../../../domain/positions/position.ts'
import type { RankedLeg } from '../../../domain/risk/deleveraging-legs.ts'
import { type LadderInput, type LadderStep, nextStep } from '../../../domain/risk/ladder.ts'
import { inherit, isInheritable } from '../../../domain/risk/liquidation.ts'
import type { FundingIndex, Price, Quote, Rate, Seconds, Seq, Steps, UserId } from '../../../domain/units.ts'
import type { Law } from '../../../simulate/laws.ts'
import { RULES, type Rules } from '../../../simulate/rules.ts'
import type { ScenarioName } from '../../../simulate/scenarios.ts'

export interface BrokenRule {
  /** How the rule is broken. */
  readonly fault: string
  readonly law: Law
  readonly scenario: ScenarioName
  readonly rules: () => Partial<Rules>
}

const PLENTY = (10n ** 40n) as Quote

/** The ladder on other input, or with another step in place of its own. */
const ladder = (
  change: (input: LadderInput) => LadderInput,
  step: (step: LadderStep, input: LadderInput) => LadderStep = (own) => own,
) => ({ nextStep: (input: LadderInput) => step(nextStep(change(input)), input) })

const instead = (step: (own: LadderStep, input: LadderInput) => LadderStep) => ladder((input) => input, step)

const batch = (change: (input: BatchInput) => BatchInput) => ({
  clearAndMatch: (input: BatchInput) => clearAndMatch(change(input)),
})

const legs = (change: (own: readonly RankedLeg[]) => readonly RankedLeg[]) =>
  instead((own) => (own.kind === 'deleverage' ? { ...own, legs: change(own.legs) } : own))

const isLiquidating = ({ kind }: LadderStep): boolean => kind !== 'end' && kind !== 'grace'
const hasEquity = ({ spec, position, index, oracle }: LadderInput): boolean =>
  exposureOf(spec, position, index, oracle).equity > 0n
const all = ({ position }: LadderInput): Steps => Math.abs(position.size) as Steps

function canInherit({ spec, position, index, oracle, backstop }: LadderInput): boolean {
  if (backstop === null || backstop === 'itself') return false
  return isInheritable(spec, position, index, oracle) && inherit(spec, position, backstop, index, oracle).ok
}

/** Does not return to a position that was near its threshold when it was looked at, until the position changes. */
function forgetful(): Partial<Rules> {
  const seen = new Map<UserId, Position>()
  return {
    liquidatable(positions, prices) {
      const found = [...RULES.liquidatable(positions, prices)].filter(
        (account) => seen.get(account) !== positions.of(account),
      )
      for (const percent of [97n, 103n]) {
        const oracle = ((prices.oracle * percent) / 100n) as Price
        for (const account of RULES.liquidatable(positions, { ...prices, oracle }))
          seen.set(account, positions.of(account))
      }
      return found
    },
  }
}

const SCANNER: readonly BrokenRule[] = [
  {
    fault: 'a threshold is not tried again after its position was looked at',
    law: 'scanned',
    scenario: 'crash',
    rules: forgetful,
  },
  {
    fault: 'the scanner leaves out shorts',
    law: 'scanned',
    scenario: 'squeeze',
    rules: () => ({
      liquidatable: (positions, prices) =>
        [...RULES.liquidatable(positions, prices)].filter((account) => positions.of(account).size > 0),
    }),
  },
  {
    fault: 'the scanner ignores funding',
    law: 'scanned',
    scenario: 'crash',
    rules: () => ({
      liquidatable: (positions, prices) =>
        RULES.liquidatable(positions, { ...prices, index: 0n as FundingIndex }),
    }),
  },
]

const LADDER: readonly BrokenRule[] = [
  {
    fault: 'a liquidation ends at MMR, below the threshold',
    law: 'ladder',
    scenario: 'crash',
    rules: () =>
      instead((own, { spec, position, index, oracle }) =>
        isLiquidating(own) && isRatioAtLeast(exposureOf(spec, position, index, oracle), spec.mmr)
          ? { kind: 'end', reason: 'healthy' }
          : own,
      ),
  },
  {
    fault: 'a liquidation goes on when the position is healthy again',
    law: 'ladder',
    scenario: 'crash',
    rules: () =>
      instead((own, input) =>
        own.kind === 'end' && own.reason === 'healthy' ? { kind: 'force', steps: all(input) } : own,
      ),
  },
  {
    fault: 'the grace after a pause is ignored by the ladder',
    law: 'ladder',
    scenario: 'outage',
    rules: () => ladder((input) => ({ ...input, pauseEndsAt: 0 as Seconds })),
  },
  {
    fault: 'the grace is ignored by ladder and auction',
    law: 'grace',
    scenario: 'outage',
    rules: () => ({
      ...ladder((input) => ({ ...input, pauseEndsAt: 0 as Seconds })),
      ...batch((input) => ({ ...input, pauseEndsAt: 0 as Seconds })),
    }),
  },
  {
    fault: 'the grace does not end',
    law: 'ladder',
    scenario: 'outage',
    rules: () =>
      ladder((input) => ({
        ...input,
        pauseEndsAt: input.pauseEndsAt > 0 ? (4e9 as Seconds) : input.pauseEndsAt,
      })),
  },
  {
    fault: 'a large position closes at once',
    law: 'pieces',
    scenario: 'crash',
    rules: () => instead((own, input) => (own.kind === 'force' ? { ...own, steps: all(input) } : own)),
  },
  {
    fault: 'a small position closes in pieces',
    law: 'pieces',
    scenario: 'crash',
    rules: () =>
      instead((own) => (own.kind === 'force' ? { ...own, steps: Math.ceil(own.steps / 2) as Steps } : own)),
  },
  {
    fault: 'the backstop inherits before the book has had its chance',
    law: 'ladder',
    scenario: 'thin-book',
    rules: () =>
      instead((own, input) =>
        ['force', 'rest'].includes(own.kind) && canInherit(input) ? { kind: 'inherit' } : own,
      ),
  },
  {
    fault: 'the backstop inherits nothing',
    law: 'ladder',
    scenario: 'cascade',
    rules: () => ladder((input) => ({ ...input, backstop: input.backstop === 'itself' ? 'itself' : null })),
  },
  {
    fault: 'the backstop inherits a position without equity before counterparties',
    law: 'ladder',
    scenario: 'crash',
    rules: () =>
      instead((own, input) => (own.kind === 'deleverage' && canInherit(input) ? { kind: 'inherit' } : own)),
  },
  {
    fault: 'a position stays in the book below two thirds of MMR',
    law: 'ladder',
    scenario: 'cascade',
    rules: () =>
      instead((own, input) =>
        ['inherit', 'deleverage'].includes(own.kind) && hasEquity(input) && input.progress.unfilled < 5
          ? { kind: 'force', steps: all(input) }
          : own,
      ),
  },
  {
    fault: 'batches without a fill do not count',
    law: 'ladder',
    scenario: 'thin-book',
    rules: () => ladder((input) => ({ ...input, progress: { ...input.progress, unfilled: 0 } })),
  },
  {
    fault: 'nothing is deleveraged',
    law: 'ladder',
    scenario: 'gap',
    rules: () => ladder((input) => ({ ...input, counterparties: () => [] })),
  },
  {
    fault: 'a position is left uncovered that the book could close',
    law: 'ladder',
    scenario: 'crash',
    rules: () => instead((own) => (own.kind === 'force' ? { kind: 'uncovered' } : own)),
  },
  {
    fault: 'a forced order is placed again while one rests',
    law: 'ladder',
    scenario: 'thin-book',
    rules: () => instead((own, input) => (own.kind === 'rest' ? { kind: 'force', steps: all(input) } : own)),
  },
  {
    fault: 'the ladder ignores funding',
    law: 'ladder',
    scenario: 'crash',
    rules: () => ladder((input) => ({ ...input, index: 0n as FundingIndex })),
  },
  {
    fault: 'a forced order is not widened',
    law: 'widened',
    scenario: 'thin-book',
    rules: () => ({ widen: (widenings) => widenings }),
  },
]

const DELEVERAGING: readonly BrokenRule[] = [
  {
    fault: 'the best counterparty is passed over',
    law: 'ranked',
    scenario: 'gap',
    rules: () =>
      ladder((input) => ({
        ...input,
        counterparties: () => {
          const [best, ...others] = [...input.counterparties()]
          return others.length > 0 ? others : best === undefined ? [] : [best]
        },
      })),
  },
  {
    fault: 'legs are sent in the opposite order',
    law: 'accepted',
    scenario: 'gap',
    rules: () => legs((own) => own.toReversed()),
  },
  {
    fault: 'a position closes whole although the backstop can inherit the rest',
    law: 'over-deleveraging',
    scenario: 'cascade',
    rules: () =>
      instead((own, input) => (own.kind === 'deleverage' ? nextStep({ ...input, backstop: null }) : own)),
  },
  {
    fault: 'a deleveraging closes half of what it must',
    law: 'enough',
    scenario: 'gap',
    rules: () => legs((own) => own.map((leg) => ({ ...leg, steps: Math.ceil(leg.steps / 2) as Steps }))),
  },
  {
    fault: 'a leg is sent for more than its counterparty has',
    law: 'accepted',
    scenario: 'gap',
    rules: () => legs((own) => own.map((leg) => ({ ...leg, steps: (leg.steps + 1) as Steps }))),
  },
  {
    fault: 'a deleveraging pays more than the pool has',
    law: 'accepted',
    scenario: 'gap',
    rules: () => ladder((input) => ({ ...input, pool: PLENTY })),
  },
]

const BATCH: readonly BrokenRule[] = [
  {
    fault: 'a batch pays more than the pool has',
    law: 'accepted',
    scenario: 'gap',
    rules: () => batch((input) => ({ ...input, pool: PLENTY })),
  },
  {
    fault: 'closes wait although the pool can pay them',
    law: 'pool-waits',
    scenario: 'crash',
    rules: () => batch((input) => ({ ...input, pool: 0n as Quote })),
  },
  {
    fault: 'the price protection is ten times as wide',
    law: 'protected',
    scenario: 'thin-book',
    rules: () => batch((input) => ({ ...input, priceProtection: (input.priceProtection * 10n) as Rate })),
  },
  {
    fault: 'quotes that have not stood in the previous auction move the protection',
    law: 'protected',
    scenario: 'thin-book',
    rules: () => batch((input) => ({ ...input, standingSeq: Number.MAX_SAFE_INTEGER as Seq })),
  },
  {
    fault: 'accounts with an action under way take part',
    law: 'accepted',
    scenario: 'cascade',
    rules: () => batch(({ excluded: _, ...input }) => input),
  },
  {
    fault: 'a batch applies an older funding index',
    law: 'mined',
    scenario: 'crash',
    rules: () => batch((input) => ({ ...input, fundingIndex: 0n as FundingIndex })),
  },
  {
    fault: 'opening below IMR is matched',
    law: 'accepted',
    scenario: 'crash',
    rules: () => ({
      ...batch((input) => ({ ...input, spec: { ...input.spec, imr: 0n as Rate } })),
      admit: (order, input) => RULES.admit(order, { ...input, spec: { ...input.spec, imr: 0n as Rate } }),
    }),
  },
]

const RESERVATION: readonly BrokenRule[] = [
  {
    fault: 'reservations are not recomputed after a batch has moved a position',
    law: 're-reserved',
    scenario: 'crash',
    rules: () => ({ decideBatch: (...input) => ({ ...RULES.decideBatch(...input), rebalanced: new Map() }) }),
  },
  {
    fault: 'reservations are not recomputed after an action has moved a position',
    law: 're-reserved',
    scenario: 'cascade',
    rules: () => ({ recomputeReservations: () => ({ reservations: new Map(), cancels: [] }) }),
  },
  {
    fault: 'orders that their account cannot pay for any more stay',
    law: 'reserved',
    scenario: 'crash',
    rules: () => ({
      decideBatch: (...input) => {
        const decision = RULES.decideBatch(...input)
        const kept = [...decision.rebalanced].map(
          ([account, each]) => [account, { ...each, cancels: [] }] as const,
        )
        return { ...decision, rebalanced: new Map(kept) }
      },
    }),
  },
  {
    fault: 'an order is admitted without the margin for it',
    law: 'reserved',
    scenario: 'crash',
    rules: () => ({ admit: (order, input) => RULES.admit(order, { ...input, available: PLENTY }) }),
  },
  {
    fault: 'a reservation ends with the match, before the fill is mined',
    law: 'accepted',
    scenario: 'crash',
    rules: () => ({ heldFor: () => 0n as Quote }),
  },
  {
    fault: 'a fill holds half of what it must',
    law: 'covered',
    scenario: 'crash',
    rules: () => ({ heldFor: (...input) => (RULES.heldFor(...input) / 2n) as Quote }),
  },
  {
    fault: 'reduce-only orders stay when a batch closes their position',
    law: 'reduce-only',
    scenario: 'crash',
    rules: () => ({ decideBatch: (...input) => ({ ...RULES.decideBatch(...input), leaving: [] }) }),
  },
  {
    fault: 'reduce-only orders stay when an action closes their position',
    law: 'reduce-only',
    scenario: 'cascade',
    rules: () => ({ endsWith: () => false }),
  },
]

export const BROKEN_RULES = [...SCANNER, ...LADDER, ...DELEVERAGING, ...BATCH, ...RESERVATION]
