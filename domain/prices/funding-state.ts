/** A market's funding as its last action leaves it, and as each further action changes it. */
import { type FundingIndex, type Millis, maxOf, minOf } from '../units.ts'
import { accrue, type FundingRate, NO_RATE } from './funding.ts'

/** `index` as of `asOf`, the time of the last action. */
export interface FundingState {
  readonly index: FundingIndex
  readonly asOf: Millis
  readonly running: FundingRate
}

/** Before the first action. */
export const NO_FUNDING: FundingState = { index: 0n as FundingIndex, asOf: 0 as Millis, running: NO_RATE }

/** The index of an action as of `asOf`, if no other action comes before it. Earlier times do not lower it. */
export const fundingIndexAt = ({ index, running, asOf: from }: FundingState, asOf: Millis): FundingIndex =>
  accrue(index, running, from, asOf)

/**
 * True if later indexes depend on `after`: the index or the rate is another one, or funding accrued, also if its
 * amount was truncated to 0.
 */
export const changesFunding = (before: FundingState, after: FundingState): boolean =>
  after.index !== before.index ||
  after.running !== before.running ||
  (before.running.rate !== 0n &&
    minOf(after.asOf, before.running.validUntil) > maxOf(before.asOf, before.running.validFrom))

/** Funding after an action: the index accrues until `asOf`, and then the rate that the action sets applies. */
export const advanceFunding = (
  state: FundingState,
  asOf: Millis,
  sets: Pick<FundingRate, 'rate' | 'validUntil'> | null,
): FundingState => ({
  index: fundingIndexAt(state, asOf),
  asOf,
  running: sets === null ? state.running : { rate: sets.rate, validFrom: asOf, validUntil: sets.validUntil },
})
