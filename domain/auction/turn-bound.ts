/**
 * Maximum orders that one market step ends, triggers or cancels; the next step continues.
 * Placements in the market wait while a step runs.
 */
export const MAX_ORDERS_PER_TURN = 1_000
