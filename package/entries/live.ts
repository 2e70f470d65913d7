/** The live feed alone, for programs that only watch. */
export { LiveFeed, type LiveFeedOptions } from '../../client/live/live-feed.ts'
export { LocalAccount } from '../../client/live/local-account.ts'
export { LocalBook } from '../../client/live/local-book.ts'
export { LocalTrades } from '../../client/live/local-trades.ts'
export type * from '../../client/live/messages.ts'
