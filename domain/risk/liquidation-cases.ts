/** Chooses the accounts on which one step of a market's liquidations decides, so that none of them keeps others from their turn. */
import type { Seq, UserId } from '../units.ts'

/** Most accounts of each kind in one step. */
export const MAX_CASES = 500
/** Most orders of the accounts of each kind. An account that has more is alone. */
export const MAX_CASE_ORDERS = 500

export interface Candidates {
  /** The accounts in liquidation with the numbers of their liquidations, by number. */
  readonly running: ReadonlyMap<UserId, Seq>
  /** The number of the last liquidation on which the previous step decided; 0 if there was none. */
  readonly last: Seq
  /** Accounts with a forced order in the book. */
  readonly forced: Iterable<UserId>
  /** Accounts below the threshold, the one farthest below it first. Read only as far as needed. */
  readonly due: Iterable<UserId>
  /** The account's orders in the book and waiting. */
  readonly ordersOf: (account: UserId) => number
}

export interface Cases {
  readonly accounts: readonly UserId[]
  readonly last: Seq
}

/**
 * Three kinds with bounds of their own: liquidations that run, in turn from the one after `last`; forced orders without a liquidation, which a
 * void or a rollback has returned to the book; and positions below the threshold, whose liquidation starts.
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
