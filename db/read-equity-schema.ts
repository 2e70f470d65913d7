/** Tables of the schema `read` with sums of an account by hour and day. Only the projector writes them. */

/** Deposits and withdrawals of an account in an hour, or on a day. */
export interface ReadCashFlowsTable {
  user_id: number
  /** Length of the interval, in milliseconds. */
  span: number
  start: number
  deposits: bigint
  /** At their requests. */
  withdrawals: bigint
}

/** Sums that the events of an hour, or of a day, have realized. */
export interface ReadRealizedProfitsTable {
  user_id: number
  /** Length of the interval, in milliseconds. */
  span: number
  start: number
  market_id: number
  realized_pnl: bigint
  fees: bigint
  funding: bigint
}
