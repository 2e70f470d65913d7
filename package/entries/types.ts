/** Types of requests, answers and messages: those of the client, and those generated from the descriptions as `Rest` and `Live`. */
export type * from '../../client/adjustments.ts'
export type * from '../../client/estimates.ts'
export type * from '../../client/live/messages.ts'
export type * from '../../client/margin-nonces.ts'
export type * from '../../client/market-history.ts'
export type * from '../../client/position-history.ts'
export type * from '../../client/responses.ts'
export type * from '../../client/session-keys.ts'
