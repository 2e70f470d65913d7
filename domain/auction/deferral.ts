/**
 * Bounds the orders that a batch changes beside those that it fills: the accounts beyond the bound are left out of the batch
 * and come first in the next auction.
 */

import type { UserId } from '../units.ts'

export interface Deferrals {
  /** Accounts that an auction left out and that have taken part in none since, in the order in which they were left out. */
  readonly waiting: ReadonlySet<UserId>
  /** Accounts that take no part in the auction under way. Their orders stay in the book unchanged. */
  readonly excluded: ReadonlySet<UserId>
}

export const NO_DEFERRALS: Deferrals = { waiting: new Set(), excluded: new Set() }

/** The auction under way goes on without these accounts too. */
export const exclude = (deferrals: Deferrals, accounts: Iterable<UserId>): Deferrals => ({
  ...deferrals,
  excluded: new Set([...deferrals.excluded, ...accounts]),
})

export interface ChangeBound {
  /** Orders that a batch may change beside those that it fills. */
  readonly most: number
  /** Accounts with a forced order. They come before all others. */
  readonly forced: ReadonlySet<UserId>
}

/**
 * Leaves out the accounts whose changes exceed the bound. Those with forced orders come first; of each kind those that wait, the longest
 * wait before the others; then those with the fewest changes, so that an account with few orders is not delayed by accounts with many. The
 * first one of each kind always takes part, so each account that waits takes part after at most as many auctions as there were accounts
 * of its kind before it. Null if the batch may be written.
 */
export function deferBeyond(
  { most, forced }: ChangeBound,
  changes: ReadonlyMap<UserId, number>,
  deferrals: Deferrals,
): Deferrals | null {
  const places = new Map([...deferrals.waiting].map((account, place) => [account, place]))
  const placeOf = (account: UserId): number => places.get(account) ?? places.size
  const inTurn = [...changes].sort(([a, own], [b, other]) => placeOf(a) - placeOf(b) || own - other || a - b)
  let left = most
  const beyond: UserId[] = []
  for (const isForced of [true, false]) {
    const kind = inTurn.filter(([account]) => forced.has(account) === isForced)
    for (const [place, [account, own]] of kind.entries()) {
      if (place === 0 || own <= left) left -= own
      else beyond.push(account)
    }
  }
  return beyond.length === 0 ? null : exclude(deferrals, beyond)
}

/** After an auction that was written: the accounts that it left out wait, the others do not. */
export function completeAuction({ waiting, excluded }: Deferrals): Deferrals {
  const still = [...waiting].filter((account) => excluded.has(account))
  return { waiting: new Set([...still, ...excluded]), excluded: new Set() }
}
