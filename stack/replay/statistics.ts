/** Statistics for the report of a replay and for benchmarks. Pure. */

export interface Point {
  readonly at: number
  readonly price: number
}

export interface Comparison {
  readonly pairs: number
  /** Mean absolute difference. */
  readonly difference: number
  /** Pearson's coefficient; null if one of the series is constant. */
  readonly correlation: number | null
}

/** Pairs each point of `ours` with the latest point of `theirs` that is not later. Both must be sorted by time. */
export function compare(ours: readonly Point[], theirs: readonly Point[]): Comparison {
  const pairs: (readonly [number, number])[] = []
  let latest = -1
  for (const { at, price } of ours) {
    while ((theirs[latest + 1]?.at ?? Number.POSITIVE_INFINITY) <= at) latest++
    const reference = theirs[latest]
    if (reference !== undefined) pairs.push([price, reference.price])
  }
  const difference = mean(pairs.map(([a, b]) => Math.abs(a - b)))
  return { pairs: pairs.length, difference, correlation: correlation(pairs) }
}

/** The smallest value that a share `p` of the values does not exceed; NaN if there are no values. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? Number.NaN
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

function correlation(pairs: readonly (readonly [number, number])[]): number | null {
  const meanA = mean(pairs.map(([a]) => a))
  const meanB = mean(pairs.map(([, b]) => b))
  let [cross, squareA, squareB] = [0, 0, 0]
  for (const [a, b] of pairs) {
    cross += (a - meanA) * (b - meanB)
    squareA += (a - meanA) ** 2
    squareB += (b - meanB) ** 2
  }
  return squareA === 0 || squareB === 0 ? null : cross / Math.sqrt(squareA * squareB)
}
