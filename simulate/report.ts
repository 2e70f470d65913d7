/** The tables of the simulator. Amounts are shares of the open interest when the paths begin, because the markets are invented. */

import { LAW_NAMES, type Law } from './laws.ts'
import type { Outcome } from './run.ts'
import type { Tally } from './tally.ts'

/** Sums over all runs of a scenario. Amounts are wei. */
export class Summary {
  readonly #outcomes: Outcome[] = []

  add(outcome: Outcome): void {
    this.#outcomes.push(outcome)
  }

  row(name: string): Record<string, string | number> {
    const sum = (of: (outcome: Outcome) => bigint): bigint =>
      this.#outcomes.reduce((total, each) => total + of(each), 0n)
    const count = (of: (outcome: Outcome) => number): number =>
      this.#outcomes.reduce((total, each) => total + of(each), 0)
    const most = (of: (outcome: Outcome) => number): number =>
      this.#outcomes.reduce((max, each) => Math.max(max, of(each)), 0)
    const forced = sum(({ tally }) => tally.forcedNotional)
    const share = (part: bigint): string =>
      percent(
        part,
        sum(({ openInterest }) => openInterest),
      )
    return {
      scenario: name,
      runs: this.#outcomes.length,
      liquidations: count(({ tally }) => tally.liquidations),
      'by the book': share(forced),
      'slippage (mean)': percent(
        sum(({ tally }) => tally.slippage),
        forced,
      ),
      'slippage (most)': `${(100 * most(({ tally }) => tally.worstSlippage)).toFixed(2)} %`,
      'by the backstop': share(sum(({ tally }) => tally.inheritedNotional)),
      'backstop result': share(sum(({ backstop }) => backstop)),
      deleveraged: share(sum(({ tally }) => tally.deleveragedNotional)),
      'winners forgo': share(sum(({ tally }) => tally.forgone)),
      'forgone / deficit': ratio(
        sum(({ tally }) => tally.forgone),
        sum(({ tally }) => tally.covered),
      ),
      'winners gain': share(sum(({ tally }) => tally.gained)),
      'over (steps)': most(({ tally }) => tally.overDeleveraged),
      'shortfall (most)': share(sum(({ worstShortfall }) => worstShortfall)),
      'deficit at the end': share(sum(({ deficits }) => deficits)),
      'runs with deficit': count(({ deficits }) => Number(deficits > 0n)),
      'waited for the pool': count(({ tally }) => tally.poolShort),
      'steps that failed': count(({ tally }) => tally.failedSteps),
      violations: count(({ tally }) => tally.violations.length),
    }
  }
}

/** How often each law was checked and broken in all runs. */
export class LawCounts {
  readonly #counts = new Map<Law, { checked: number; broken: number }>()

  add({ checks }: Tally): void {
    for (const [law, { checked, broken }] of checks) {
      const before = this.of(law)
      this.#counts.set(law, { checked: before.checked + checked, broken: before.broken + broken })
    }
  }

  of(law: Law): { readonly checked: number; readonly broken: number } {
    return this.#counts.get(law) ?? { checked: 0, broken: 0 }
  }
}

export const lawTableOf = (counts: LawCounts): Record<string, { checked: number; broken: number }> =>
  Object.fromEntries(LAW_NAMES.map((law) => [law, counts.of(law)]))

function ratio(part: bigint, whole: bigint): string {
  return whole === 0n ? '–' : (Number((part * 10_000n) / whole) / 10_000).toFixed(4)
}

function percent(part: bigint, whole: bigint): string {
  return whole === 0n ? '–' : `${(Number((part * 1_000_000n) / whole) / 10_000).toFixed(3)} %`
}

/** One column per scenario, because there are more measures than a terminal is wide. */
export function tableOf(
  rows: readonly Record<string, string | number>[],
): Record<string, Record<string, string | number>> {
  const measures = Object.keys(rows[0] ?? {}).filter((measure) => measure !== 'scenario')
  return Object.fromEntries(
    measures.map((measure) => [
      measure,
      Object.fromEntries(rows.map((row) => [row.scenario as string, row[measure] as string | number])),
    ]),
  )
}
