/** A market's funding as its last action leaves it, and as each further action changes it. */
import type { FundingIndex, Millis } from '../units.ts'
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
