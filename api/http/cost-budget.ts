/** One budget for all limits of an account together, and a shared budget for the accounts of an address. */
import type { Limits } from '../config.ts'
import type { CountedRequests, CountRequest, NearestLimit } from '../ports.ts'
import type { Bucket } from './buckets.ts'

/** Units of a budget per second. */
const UNITS = 1_000_000
/** Part of a budget that only cancels may use: other requests must not keep an account from cancelling. */
const RESERVED_FOR_CANCELS = 0.05
const SHARED = 1 - RESERVED_FOR_CANCELS

/** Units of requests limited by their cost on the chain. They take about the processor time of a read. */
export const UNITS_ON_CHAIN = UNITS / 50
const ON_CHAIN: ReadonlySet<Bucket> = new Set(['faucet', 'relays', 'adjustments'])

/** Part of the budget that the limit may use. */
export const shareOf = (bucket: Bucket): number => (bucket === 'cancels' ? 1 : SHARED)

/**
 * Each limit alone allows a quarter of one core (`test/api/http/cost.test.ts`), so all limits together do too. For
 * example, at 50 reads/s a read costs 1/50 of a second's units.
 */
const unitsOf = (limits: Limits, bucket: Bucket): number =>
  ON_CHAIN.has(bucket)
    ? UNITS_ON_CHAIN
    : Math.max(1, Math.floor((UNITS * shareOf(bucket)) / Math.max(1, limits[bucket])))

/** Keys of the budgets to use: the account (or the address of an anonymous request), and the network of the address. */
export interface Payer {
  readonly account: string
  readonly network: string
}

/** The part of a budget that a request takes. */
interface Part {
  readonly key: string
  readonly units: number
  /** Units per window. */
  readonly most: number
}

export interface CostBudgets {
  readonly windowMs: number
  /**
   * Budget parts of a number of requests. Empty for `auth`: a stolen API key must not use up the challenges and
   * rotations that its owner needs to replace it.
   */
  partsOf(bucket: Bucket, payer: Payer, requests?: number): readonly Part[]
  /** The budget of the account without the part that only cancels may use. */
  accountBudget(payer: Payer): Pick<Part, 'key' | 'most'>
}

const keyOfAccount = (account: string): string => `cost:${account}`

export function createCostBudgets(limits: Limits): CostBudgets {
  const ofWindow = UNITS * limits.windowSeconds
  const ofAddress = ofWindow * limits.accounts
  return {
    windowMs: limits.windowSeconds * 1000,
    partsOf(bucket, { account, network }, requests = 1) {
      if (bucket === 'auth') return []
      const units = unitsOf(limits, bucket) * requests
      const share = shareOf(bucket)
      return [
        { key: keyOfAccount(account), units, most: share * ofWindow },
        { key: `cost-address:${network}`, units, most: share * ofAddress },
      ]
    },
    accountBudget: ({ account }) => ({ key: keyOfAccount(account), most: SHARED * ofWindow }),
  }
}

export const isWithin = ({ most }: Part, { current }: CountedRequests): boolean => current <= most

/** Expresses a budget as a number of requests of this part. */
export const nearestOfPart = ({ units, most }: Part, { current, ttl }: CountedRequests): NearestLimit => ({
  max: Math.floor(most / units),
  remaining: Math.max(0, Math.floor((most - current) / units)),
  resetS: Math.ceil(ttl / 1000),
})

/** Counts a part unless the budget lacks it. */
export const take = (count: CountRequest, { key, units, most }: Part, windowMs: number) =>
  count(key, windowMs, units, most)

/**
 * Counts the cost of a request above its first part. Cost above the budget is dropped, because it would use the part
 * reserved for cancels.
 */
export async function takeAfterwards(
  { count, read }: { readonly count: CountRequest; readonly read: CountRequest },
  { key, units, most }: Part,
  windowMs: number,
): Promise<void> {
  const { current } = await read(key, windowMs)
  const rest = Math.min(units, most - current)
  if (rest > 0) await count(key, windowMs, rest, most)
}

/** Additional reads that a dry run or a sizing counts as: it takes up to twice as long as the largest read. */
export const COMPUTATION = 2
