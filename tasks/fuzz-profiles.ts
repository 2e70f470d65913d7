/** Sizes of the runs of random trading (test/contracts/invariants). */

export interface FuzzProfile {
  readonly seed: string
  readonly runs: number
  /** Steps of a run. */
  readonly depth: number
  /** Inputs of a test without a sequence of steps. */
  readonly fuzzRuns: number
}

const SEED = '0x5eed'

/** Part of every test run. */
export const SHORT: FuzzProfile = { seed: SEED, runs: 10, depth: 50, fuzzRuns: 200 }

/** A campaign: with six contracts of invariants, 8,500 runs are 10.2 million steps. */
export const DEEP: FuzzProfile = { seed: SEED, runs: 8_500, depth: 200, fuzzRuns: 50_000 }
