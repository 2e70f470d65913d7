/** Pseudo-random numbers that repeat for a seed. */

export interface Random {
  /** From 0, included, to 1. */
  (): number
  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number
  chance(probability: number): boolean
  pick<Value>(values: readonly Value[]): Value
  /** Normally distributed around 0 with deviation 1. */
  normal(): number
}

/** Mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1))
  return Object.assign(next, {
    between,
    chance: (probability: number) => next() < probability,
    pick: <Value>(values: readonly Value[]) => values[between(0, values.length - 1)] as Value,
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  })
}
