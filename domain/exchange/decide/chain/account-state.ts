/** Answers a worker that is about to sign an adjustment with the state of its account. Changes nothing. */
import type { Position } from '../../../positions/position.ts'
import type { MarketId, Quote, UserId } from '../../../units.ts'
import type { Decider } from '../../decide.ts'
import { pendingActions } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import { minedPosition, nonceFloor } from './read.ts'

export interface AccountStateCommand {
  readonly kind: 'account_state'
  readonly userId: UserId
  readonly marketId: MarketId
  /** The adjustment attempt that the worker is about to sign. */
  readonly adjustmentId: string
}

export interface AccountState {
  /** Funds that the chain can debit: free balance and pending withdrawal. Wei. */
  readonly funds: Quote
  /** Mined position. */
  readonly position: Position
  /** Whether an unsettled fill, a queued market action or an earlier attempt may still change the position. */
  readonly isMoving: boolean
  /** Minimum valid nonce of the account's signed adjustments. */
  readonly minimumNonce: bigint
}

/** Null: the account does not exist. */
export type AccountStateAnswer = AccountState | null

export const readAccountState: Decider<AccountStateCommand, AccountStateAnswer> = ({ state }, _, command) => {
  const { userId, marketId } = command
  const account = state.accounts.get(userId)
  if (account === undefined) return null
  const { address } = state.users.need(userId)
  return {
    funds: (account.free + account.pendingWithdrawal) as Quote,
    position: minedPosition(state.positions.get(userId, marketId)),
    isMoving: isMoving(state, command),
    minimumNonce: nonceFloor(state, marketId, address),
  }
}

function isMoving(state: ExchangeState, command: AccountStateCommand): boolean {
  const { userId, marketId } = command
  return (
    state.orderIndex.liveOf(marketId, userId).some(({ settling }) => settling > 0) ||
    pendingActions(state, marketId).some(({ touches }) => touches.includes(userId)) ||
    isAnotherFirst(state, command)
  )
}

/** Attempts are signed in the order of their acceptance. A signed attempt may still be mined. */
function isAnotherFirst(
  state: ExchangeState,
  { userId, marketId, adjustmentId }: AccountStateCommand,
): boolean {
  const open = state.attemptIndex.allInFlight(marketId, userId)
  const own = open.findIndex(({ adjustment_id }) => adjustment_id === adjustmentId)
  return open.some(
    ({ adjustment_id, status }, at) => adjustment_id !== adjustmentId && (status !== 'PREPARED' || at < own),
  )
}
