/** The purposes of the transactions that end markets. The claims that are on their way are found by them (`relayer_transactions_of_ends`). */
import type { MarketId, UserId } from '../../domain/units.ts'

export const reportPurpose = (marketId: MarketId): string => `end:${marketId}:report`
export const deficitsPurpose = (marketId: MarketId): string => `end:${marketId}:deficits`
/** Followed by the account's number. */
export const claimPurposes = (marketId: MarketId): string => `end:${marketId}:claim:`
export const claimPurpose = (marketId: MarketId, userId: UserId): string =>
  `${claimPurposes(marketId)}${userId}`
