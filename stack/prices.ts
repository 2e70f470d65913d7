/** Sources of simulated prices: a seeded random walk per market. Pure. */
import type { Price } from '../domain/units.ts'

/** Returns the next price of a market. The interface also fits a live feed. */
export interface PriceSource {
  next(): Price
}

export interface Walk {
  /** Prices are rounded to this. */
  readonly grain: bigint
  /** The walk reverts to this price, so that prices stay plausible on a stack that runs for weeks. */
  readonly home: bigint
  /** Standard deviation of one step, as a fraction of the price; for a probability in log-odds. */
  readonly volatility: number
  readonly probability: boolean
}

/** Share of the distance to `home` (in the walk's scale) that one step reverts. */
const PULL = 0.0005

/** Deterministic: the same walk, start and seed produce the same prices. */
export function randomWalk(walk: Walk, start: bigint, seed: number): PriceSource {
  const normal = gaussian(seed)
  const [toScale, fromScale] = walk.probability ? [logit, logistic] : [Math.log, Math.exp]
  const home = toScale(Number(walk.home) / 1e18)
  let level = toScale(Number(start) / 1e18)
  return {
    next() {
      level += PULL * (home - level) + walk.volatility * normal()
      return rounded(fromScale(level), walk.grain) as Price
    },
  }
}

const logit = (p: number): number => Math.log(p / (1 - p))
const logistic = (x: number): number => 1 / (1 + Math.exp(-x))

function rounded(value: number, grain: bigint): bigint {
  const grains = BigInt(Math.round((value * 1e18) / Number(grain)))
  return (grains < 1n ? 1n : grains) * grain
}

/** Normal deviates from a 32-bit generator (mulberry32, then Box and Muller's transform). */
function gaussian(seed: number): () => number {
  let state = seed >>> 0
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
}
