/**
 * Computes `asOf`, the time of a batch: it never decreases, and never exceeds block time by more than the
 * contract accepts.
 */
import { ACTION_AHEAD } from '../settlement/durations.ts'
import { type Millis, maxOf, minOf } from '../units.ts'

/**
 * Safety margin below the contract's bound, for a node with a head slightly ahead of the mining node's head.
 */
const MARGIN_MS = 250

export interface AsOfInput {
  readonly now: Millis
  /** Block time of the chain head; null while no node responds. The next block is not older. */
  readonly headTime: Millis | null
  /** `asOf` of the market's last batch. */
  readonly lastAsOf: Millis
}

/**
 * `asOf` of the next batch; null if no node responds, or if block time has not caught up with the last batch.
 */
export function nextAsOf({ now, headTime, lastAsOf }: AsOfInput): Millis | null {
  if (headTime === null) return null
  const latest = (headTime + ACTION_AHEAD - MARGIN_MS) as Millis
  return lastAsOf > latest ? null : maxOf(minOf(now, latest), lastAsOf)
}
