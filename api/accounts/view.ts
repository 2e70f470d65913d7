/** Converts a balance to its JSON form. */
import { payableAt } from '../../domain/settlement/durations.ts'
import { isoTime, toNumber } from '../wire/amounts.ts'
import type { Balance, MarginBalance } from './schema.ts'

export interface BalanceParts {
  readonly free: bigint
  readonly reserved: bigint
  readonly pendingWithdrawal: bigint
  readonly positionMargin: bigint
}

/** `requestedAt`: of the last withdrawal; null if there was none. */
export interface AccountBalance extends BalanceParts {
  readonly requestedAt: number | null
  /** Unix seconds at which the bank's last pause ends or ended. */
  readonly pauseEndsAt: number
}

/** Every answer to a placement has a balance: the fields are written out, because spreads cost several times as much. */
export const balanceView = ({
  free,
  reserved,
  pendingWithdrawal,
  positionMargin,
}: BalanceParts): Balance => ({
  total: toNumber(free + positionMargin),
  total_e18_raw: String(free + positionMargin),
  available: toNumber(free - reserved),
  available_e18_raw: String(free - reserved),
  free: toNumber(free),
  free_e18_raw: String(free),
  reserved: toNumber(reserved),
  reserved_e18_raw: String(reserved),
  position_margin: toNumber(positionMargin),
  position_margin_e18_raw: String(positionMargin),
  pending_withdrawals: toNumber(pendingWithdrawal),
  pending_withdrawals_e18_raw: String(pendingWithdrawal),
})

/** From when on the bank pays all that is pending: every request restarts the clock, and the bank pays nothing during a pause. */
export const payableTime = (requestedAt: number, pauseEndsAt: number): number =>
  Math.max(payableAt(requestedAt), pauseEndsAt * 1000)

export function accountBalanceView(parts: AccountBalance): MarginBalance['balance'] {
  const { pendingWithdrawal, requestedAt, pauseEndsAt } = parts
  const isPending = pendingWithdrawal > 0n && requestedAt !== null
  return {
    ...balanceView(parts),
    pending_withdrawals_payable_at: isPending ? isoTime(payableTime(requestedAt, pauseEndsAt)) : null,
  }
}
