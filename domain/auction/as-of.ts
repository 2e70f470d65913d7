/** The time of a batch, `asOf`: never decreasing, and never further ahead of block time than the contract accepts. */
import { ACTION_AHEAD } from '../settlement/durations.ts'
import { type Millis, maxOf, minOf } from '../units.ts'

/** Kept below the contract's bound, for a node whose head is slightly ahead of the one that mines the batch. */
const MARGIN_MS = 250

export interface AsOfInput {
  readonly now: Millis
  /** Block time of the chain's head; null while no node responds. The next block is not older. */
  readonly headTime: Millis | null
  /** Of the market's last batch. */
  readonly lastAsOf: Millis
}

/** Null if no time can be settled: no node responds, or the chain has to catch up with the last batch. */
export function nextAsOf({ now, headTime, lastAsOf }: AsOfInput): Millis | null {
  if (headTime === null) return null
  const latest = (headTime + ACTION_AHEAD - MARGIN_MS) as Millis
  return lastAsOf > latest ? null : maxOf(minOf(now, latest), lastAsOf)
}
