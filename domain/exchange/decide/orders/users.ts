/** Users. A user is created when an address first logs in, or when the bank first names it. */
import type { Address, Millis, UserId } from '../../../units.ts'
import type { Decider } from '../../decide.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'

export interface LogInCommand {
  readonly kind: 'log_in'
  /** Address that the login has proven. */
  readonly address: Address
}

export interface LoggedIn {
  readonly userId: UserId
  readonly isNew: boolean
}

export const decideLogIn: Decider<LogInCommand, LoggedIn> = (draft, { now }, { address }) =>
  userOf(draft, address, now)

/** The user with the address; a new user gets the next id. */
export function userOf(draft: Draft, address: Address, now: Millis): LoggedIn {
  const { state } = draft
  const known = state.userIds.get(address)
  if (known !== undefined) return { userId: known, isNew: false }
  const userId = state.newestUser.next()
  draft.write(ACCOUNTS, { kind: 'user_created', user_id: userId, address, at: now })
  return { userId, isNew: true }
}
