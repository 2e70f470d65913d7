/** The requests that are counted together. */

/** The limits of an account: all of its credentials together, but of `auth` each kind of credential apart. */
export const BUCKETS = [
  'reads',
  'orders',
  'batches',
  'cancels',
  'faucet',
  'auth',
  'relays',
  'adjustments',
  'proofs',
] as const
export type Bucket = (typeof BUCKETS)[number]
