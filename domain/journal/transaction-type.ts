/** The kinds of transactions in an account's history, as the contract with traders lists them. */
export const TRANSACTION_TYPES = [
  ...(['deposit', 'withdrawal', 'adjust_leverage', 'funding_payment', 'add_margin'] as const),
  ...(['remove_margin', 'liquidation', 'market_delisting_payout'] as const),
] as const
export type TransactionType = (typeof TRANSACTION_TYPES)[number]
