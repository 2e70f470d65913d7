/** Simulated prices: a seeded random walk that continues from the feed's latest report. */
import type { Reading } from '../../../domain/prices/aggregate.ts'
import type { Millis } from '../../../domain/units.ts'
import type { PriceSource } from '../../ports.ts'
import type { WalkTerms } from '../../price-file.ts'

/** Time between two steps. Far below the move that a market accepts in it (`allowedMove`), so that prices never halt one. */
export const STEP_MS = 500

export function createWalkSource({ first, ...terms }: WalkTerms, seed: number): PriceSource {
  let walk: PriceWalk | null = null
  let reading: Reading | null = null
  return {
    name: terms.name,
    maxAge: terms.maxAge,
    maxDeviation: terms.maxDeviation,
    answer(now, last) {
      // Another program may have published this feed meanwhile.
      const isForeign = last !== null && reading !== null && last.price !== reading.price
      if (walk === null || isForeign) walk = randomWalk(terms, last?.price ?? first, seed + now)
      if (reading === null || isForeign || now - reading.observedAt >= STEP_MS)
        reading = { price: walk.next(), observedAt: now as Millis }
      return { reading, fault: null }
    },
    stop() {},
  }
}

/** Yields the next price. */
export interface PriceWalk {
  next(): bigint
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
export function randomWalk(walk: Walk, start: bigint, seed: number): PriceWalk {
  const normal = gaussian(seed)
  const [toScale, fromScale] = walk.probability ? [logit, logistic] : [Math.log, Math.exp]
  const home = toScale(Number(walk.home) / 1e18)
  let level = toScale(Number(start) / 1e18)
  return {
    next() {
      level += PULL * (home - level) + walk.volatility * normal()
      return rounded(fromScale(level), walk.grain)
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
