/**
 * Chooses the accounts that one liquidation step decides on, so that no account delays another indefinitely.
 */
import type { Seq, UserId } from '../units.ts'

/** Maximum accounts of each kind per step. */
export const MAX_CASES = 500
/** Maximum orders of the accounts of each kind. An account with more orders is decided alone. */
export const MAX_CASE_ORDERS = 500

export interface Candidates {
  /** The accounts in liquidation with the numbers of their liquidations, by number. */
  readonly running: ReadonlyMap<UserId, Seq>
  /** Number of the last liquidation that the previous step decided on; 0 if there was none. */
  readonly last: Seq
  /** Accounts with a forced order in the book. */
  readonly forced: Iterable<UserId>
  /** Accounts below the threshold, farthest below it first. Read lazily. */
  readonly due: Iterable<UserId>
  /** Number of the account's orders in the book and waiting. */
  readonly ordersOf: (account: UserId) => number
}

export interface Cases {
  readonly accounts: readonly UserId[]
  readonly last: Seq
}

/**
 * Chooses accounts of three kinds, each with its own bound: running liquidations after `last`, forced orders that a
 * void or rollback returned, and positions below the threshold.
 */
export function chooseCases({ running, last, forced, due, ordersOf }: Candidates): Cases {
  const going = bounded(inTurn(running, last), ordersOf)
  const isNew = (account: UserId): boolean => !running.has(account)
  const returned = bounded(filter(forced, isNew), ordersOf)
  const starting = bounded(filter(due, isNew), ordersOf)
  const final = going.at(-1)
  return {
    accounts: [...new Set([...going, ...returned, ...starting])],
    last: final === undefined ? (0 as Seq) : (running.get(final) as Seq),
  }
}

function* inTurn(running: ReadonlyMap<UserId, Seq>, last: Seq): Generator<UserId> {
  for (const [account, number] of running) if (number > last) yield account
  for (const [account, number] of running) if (number <= last) yield account
}

function* filter(accounts: Iterable<UserId>, isTaken: (account: UserId) => boolean): Generator<UserId> {
  for (const account of accounts) if (isTaken(account)) yield account
}

function bounded(accounts: Iterable<UserId>, ordersOf: (account: UserId) => number): UserId[] {
  const taken: UserId[] = []
  let orders = 0
  for (const account of accounts) {
    orders += ordersOf(account)
    if (taken.length > 0 && orders > MAX_CASE_ORDERS) break
    taken.push(account)
    if (taken.length === MAX_CASES) break
  }
  return taken
}
