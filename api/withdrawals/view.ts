/** Converts a withdrawal's row to its JSON form. */
import { payableTime } from '../accounts/view.ts'
import { amount, isoTime, maybeAmount, maybeTime } from '../wire/amounts.ts'
import type { WithdrawalRow, Withdrawals } from './query.ts'
import type { Withdrawal } from './schema.ts'

/** From when on the bank pays what is pending; null if nothing is. */
export const pendingPayableAt = ({ pending, requestedAt, pauseEndsAt }: Withdrawals): number | null =>
  pending === 0n || requestedAt === null ? null : payableTime(requestedAt, pauseEndsAt)

/** `payableAt`: of all that is pending. */
export function withdrawalView(row: WithdrawalRow, payableAt: number | null, now: number): Withdrawal {
  const isPaid = row.paid_at !== null
  return {
    withdrawal_id: row.id,
    status: isPaid ? 'PAID' : pendingStatus(payableAt, now),
    ...amount('amount', row.amount),
    requested_at: isoTime(row.at),
    payable_at: isPaid ? null : maybeTime(payableAt),
    tx_hash: row.tx_hash,
    log_index: row.log_index,
    block_number: row.block,
    paid_at: maybeTime(row.paid_at),
    paid_tx_hash: row.paid_tx_hash,
    ...maybeAmount('paid_amount', row.paid_amount),
  }
}

function pendingStatus(payableAt: number | null, now: number): Withdrawal['status'] {
  if (payableAt === null) return 'USED'
  return now < payableAt ? 'REQUESTED' : 'PAYABLE'
}
