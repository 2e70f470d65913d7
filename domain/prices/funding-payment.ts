/** What funding adds to or takes from a position's margin. The laws are in `domain/README.md`. */
import type { FundingIndex, Quote, Steps } from '../units.ts'

/**
 * What a position of that size receives while the index moves, in wei; negative if it pays. Exact: the index
 * is wei per step, so nothing is divided.
 */
export const fundingPayment = (size: Steps, from: FundingIndex, to: FundingIndex): Quote =>
  (BigInt(size) * (from - to)) as Quote
