/** Margin balance and lookup of an account. */
import Type, { type Static } from 'typebox'
import { amountOf, closed, expects, named, nullable, Time, words } from '../wire/schema.ts'

export const Balance = named('Balance', {
  ...amountOf('total', 'Free balance plus the margin of all positions.'),
  ...amountOf('available', 'Free balance minus the reservations of orders.'),
  ...amountOf('free', "The account's balance in the margin bank, outside positions."),
  ...amountOf('reserved', 'Reserved for open orders and for fills that are settling.'),
  ...amountOf('position_margin', 'Margin of all positions.'),
  ...amountOf('pending_withdrawals', 'Requested and not yet withdrawn; no longer part of the free balance.'),
})
export type Balance = Static<typeof Balance>

export const MarginBalance = named('MarginBalance', {
  user_id: Type.Integer(),
  asset: words(['USDM'], 'The collateral token.'),
  balance: Type.Object({
    ...Balance.properties,
    pending_withdrawals_payable_at: nullable(
      Time('From when on the bank pays the pending withdrawals; null if none is pending.'),
    ),
  }),
})
export type MarginBalance = Static<typeof MarginBalance>

export const AddressParams = closed({
  address: Type.String({
    pattern: '^0x[0-9a-fA-F]{40}$',
    ...expects('0x and 40 hex digits'),
    description: 'Wallet of the account.',
  }),
})
export const User = named('User', {
  user_id: Type.Integer(),
  address: Type.String(),
  created_at: Time('Time of the first deposit or login.'),
})
