/** Funding payment of a position's margin. `domain/prices/README.md` states the laws. */
import type { FundingIndex, Quote, Steps } from '../units.ts'

/**
 * Wei that a position of this size receives while the index moves; negative if it pays.
 * Exact: the index is wei per step, so nothing is divided.
 */
export const fundingPayment = (size: Steps, from: FundingIndex, to: FundingIndex): Quote =>
  (BigInt(size) * (from - to)) as Quote
