/**
 * Most orders that one transaction of a market ends, triggers or cancels; the next transaction continues with the others. A transaction
 * that ends a thousand orders holds the shard's lock for about 100 ms, and placements wait for that lock.
 */
export const MAX_ORDERS_PER_TURN = 1_000
