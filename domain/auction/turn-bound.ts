/**
 * Most orders that one step of a market ends, triggers or cancels; the next step continues with the others. While a step runs, the
 * placements of its market wait.
 */
export const MAX_ORDERS_PER_TURN = 1_000
