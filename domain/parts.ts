/** Cuts a cleared batch into transactions that the chain takes: each balanced and within its limits. */
import type { Cleared, Fill, Pair } from './clearing.ts'
import { InvariantError } from './invariant.ts'

/** Limits of one settlement transaction. */
export const PART_ORDERS = 200
export const PART_SLOTS = 400

/** A share of a cleared batch whose buys equal its sells. Its fills are those of its pairs, by account in tranche order. */
export interface Part {
  readonly pairs: readonly Pair[]
  readonly fills: readonly Fill[]
}

/** The parts in settlement order; their pairs in a row are the batch's pairs. */
export function splitIntoParts(_cleared: Cleared): readonly Part[] {
  throw new InvariantError('not written')
}
