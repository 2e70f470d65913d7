/** A market's moving averages of its book against the oracle price. They survive a change of the market's owner. */
import type { MarkBasis } from './mark.ts'
import { NO_PREMIUM, type PremiumAverage } from './premium.ts'

export interface PriceAverages {
  /** Null before the first mark. */
  readonly basis: MarkBasis | null
  readonly premium: PremiumAverage
}

export const NO_AVERAGES: PriceAverages = { basis: null, premium: NO_PREMIUM }
