/** Sizes of the runs of random trading (test/contracts/invariants). */

export interface FuzzProfile {
  readonly seed: number
  readonly runs: number
  /** Steps of a run. */
  readonly depth: number
  /** Inputs of a test without a sequence of steps. */
  readonly fuzzRuns: number
}

const SEED = 0x5eed

/** Part of every test run. */
export const SHORT: FuzzProfile = { seed: SEED, runs: 10, depth: 50, fuzzRuns: 200 }

/**
 * The campaign runs in slices, each with a seed of its own: runs are independent of each other, so nothing is lost. Together they
 * are ten million steps in the eight markets of `Exchange` and `Ending`.
 */
export const DEEP = { seed: SEED, slices: 55, depth: 200, fuzzRuns: 5_000 } as const

/**
 * Runs of each contract in a slice, and the number of slices, by file. A step of `Exchange` takes six times as long as one of the
 * other files.
 */
export const DEEP_FILES = {
  Exchange: { runs: 100, slices: 18 },
  Ending: { runs: 250, slices: DEEP.slices },
  Pause: { runs: 100, slices: DEEP.slices },
  Band: { runs: 1, slices: 18 },
} as const

/** One file of a slice, as `test/fuzz-deep.ts` chooses it; by default a short one. */
export function deepProfile({ FUZZ_SLICE = '0', FUZZ_RUNS = '100' }: NodeJS.ProcessEnv): FuzzProfile {
  return { ...DEEP, seed: DEEP.seed + Number(FUZZ_SLICE), runs: Number(FUZZ_RUNS) }
}

/** As Hardhat expects it, and as the report shows it. */
export const seedText = (seed: number): string => `0x${seed.toString(16)}`
