/** Converts a balance to its JSON form. */
import { amount } from '../wire/amounts.ts'
import type { Balance } from './schema.ts'

export interface BalanceParts {
  readonly free: bigint
  readonly reserved: bigint
  readonly pendingWithdrawal: bigint
  readonly positionMargin: bigint
}

export const balanceView = ({
  free,
  reserved,
  pendingWithdrawal,
  positionMargin,
}: BalanceParts): Balance => ({
  ...amount('total', free + positionMargin),
  ...amount('available', free - reserved),
  ...amount('free', free),
  ...amount('reserved', reserved),
  ...amount('position_margin', positionMargin),
  ...amount('pending_withdrawals', pendingWithdrawal),
})
