/**
 * Bounds the orders that a batch changes besides filled orders.
 * Accounts beyond the bound are left out of the batch and come first in the next auction.
 */

import type { UserId } from '../units.ts'

export interface Deferrals {
  /** Accounts left out of an auction that have not taken part since, longest wait first. */
  readonly waiting: ReadonlySet<UserId>
  /** Accounts that take no part in the current auction. Their orders stay in the book unchanged. */
  readonly excluded: ReadonlySet<UserId>
}

export const NO_DEFERRALS: Deferrals = { waiting: new Set(), excluded: new Set() }

/** Also leaves these accounts out of the current auction. */
export const exclude = (deferrals: Deferrals, accounts: Iterable<UserId>): Deferrals => ({
  ...deferrals,
  excluded: new Set([...deferrals.excluded, ...accounts]),
})

export interface ChangeBound {
  /** Maximum changed orders besides filled orders. */
  readonly most: number
  /** Accounts with a forced order. They precede all other accounts. */
  readonly forced: ReadonlySet<UserId>
}

/** Leaves out the accounts with changes beyond the bound; null if the batch may be written. */
export function deferBeyond(
  { most, forced }: ChangeBound,
  changes: ReadonlyMap<UserId, number>,
  deferrals: Deferrals,
): Deferrals | null {
  const places = new Map([...deferrals.waiting].map((account, place) => [account, place]))
  const placeOf = (account: UserId): number => places.get(account) ?? places.size
  // Accounts with few changes precede accounts with many, so that the latter do not delay them.
  const inTurn = [...changes].sort(([a, own], [b, other]) => placeOf(a) - placeOf(b) || own - other || a - b)
  let left = most
  const beyond: UserId[] = []
  for (const isForced of [true, false]) {
    const kind = inTurn.filter(([account]) => forced.has(account) === isForced)
    // The first account of each kind always takes part. A waiting account therefore waits for at most as many
    // auctions as accounts of its kind preceded it.
    for (const [place, [account, own]] of kind.entries()) {
      if (place === 0 || own <= left) left -= own
      else beyond.push(account)
    }
  }
  return beyond.length === 0 ? null : exclude(deferrals, beyond)
}

/**
 * State after a written auction: the accounts that it left out wait; accounts that took part no longer wait.
 */
export function completeAuction({ waiting, excluded }: Deferrals): Deferrals {
  const still = [...waiting].filter((account) => excluded.has(account))
  return { waiting: new Set([...still, ...excluded]), excluded: new Set() }
}
