/** Withdrawals of an account. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  maybeAmountOf,
  NextCursor,
  named,
  nullable,
  pageQuery,
  rangeQuery,
  Time,
  words,
} from '../wire/schema.ts'

export const Withdrawal = named('Withdrawal', {
  withdrawal_id: Type.String({ description: 'The `id` of its transaction in the list of transactions.' }),
  status: words(
    ['REQUESTED', 'PAYABLE', 'PAID', 'USED'],
    'REQUESTED until `payable_at`, then PAYABLE until the payout. USED: fills that the pending amount backed have used all of it.',
  ),
  ...amountOf('amount', 'The requested amount.'),
  requested_at: Time('Block time of the request.'),
  payable_at: nullable(
    Time(
      'From when on the bank pays; every further request restarts this clock. Null once it is paid or used.',
    ),
  ),
  tx_hash: Type.String({ description: 'The transaction of the request.' }),
  log_index: Type.Integer(),
  block_number: Type.Integer(),
  paid_at: nullable(Time('Block time of the payout.')),
  paid_tx_hash: nullable(Type.String({ description: 'The transaction of the payout.' })),
  ...maybeAmountOf(
    'paid_amount',
    'The payout, which pays all requests since the payout before; less than their sum if fills used a part.',
  ),
})
export type Withdrawal = Static<typeof Withdrawal>

export const Withdrawals = named('Withdrawals', {
  ...amountOf('pending', 'Requested and neither paid nor used.'),
  payable_at: nullable(Time('From when on the bank pays it; null if nothing is pending.')),
  withdrawals: Type.Array(Withdrawal),
  next_cursor: NextCursor,
})

export const WithdrawalsQuery = closed({
  ...rangeQuery('withdrawals requested'),
  ...pageQuery,
  ...bookmarkQuery,
})
