/** A market's funding after its last action, and the effect of each further action. */
import { type FundingIndex, type Millis, maxOf, minOf } from '../units.ts'
import { accrue, type FundingRate, NO_RATE } from './funding.ts'

/** `index` at `asOf`, the time of the last action. */
export interface FundingState {
  readonly index: FundingIndex
  readonly asOf: Millis
  readonly running: FundingRate
}

/** Funding before the first action. */
export const NO_FUNDING: FundingState = { index: 0n as FundingIndex, asOf: 0 as Millis, running: NO_RATE }

/**
 * Funding index of an action at `asOf`, if no other action precedes it. A time before the last action does
 * not lower the index.
 */
export const fundingIndexAt = ({ index, running, asOf: from }: FundingState, asOf: Millis): FundingIndex =>
  accrue(index, running, from, asOf)

/**
 * True if later indexes depend on `after`: index or rate differs, or funding accrued, even if the amount was
 * truncated to 0.
 */
export const changesFunding = (before: FundingState, after: FundingState): boolean =>
  after.index !== before.index ||
  after.running !== before.running ||
  (before.running.rate !== 0n &&
    minOf(after.asOf, before.running.validUntil) > maxOf(before.asOf, before.running.validFrom))

/** Funding after an action: the index accrues until `asOf`, and then the action's rate applies. */
export const advanceFunding = (
  state: FundingState,
  asOf: Millis,
  sets: Pick<FundingRate, 'rate' | 'validUntil'> | null,
): FundingState => ({
  index: fundingIndexAt(state, asOf),
  asOf,
  running: sets === null ? state.running : { rate: sets.rate, validFrom: asOf, validUntil: sets.validUntil },
})
