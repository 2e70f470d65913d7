/** Response bodies of position history, realized profits and equity. */
import type { Side } from '../domain/orders/order.ts'
import type { Amounts } from './amount-fields.ts'

/**
 * A position since its opening. `average_exit_price`: for a takeover, the price at which its margin was used up.
 */
export type RecordedPosition = Amounts<
  | 'largest_size'
  | 'opened_quantity'
  | 'average_entry_price'
  | 'average_exit_price'
  | 'realized_pnl'
  | 'fees'
  | 'funding'
> & {
  readonly position_id: string
  readonly market_id: number
  readonly symbol: string
  readonly side: Side
  /** Null while the position is open. */
  readonly ending: 'trade' | 'liquidation' | 'deleveraging' | 'inheritance' | 'settlement' | null
  readonly opened_at: string
  readonly closed_at: string | null
}

/** Realized amounts of an interval. `net_pnl` includes fees and funding. */
export type ProfitPoint = Amounts<'realized_pnl' | 'fees' | 'funding' | 'net_pnl'> & {
  readonly start: string
}

export interface ProfitPage {
  readonly interval: '1h' | '1d'
  readonly pnl: readonly ProfitPoint[]
  readonly next_cursor: string | null
}

/** Equity at `valued_at`, and the flows of the interval. */
export type EquityPoint = Amounts<
  'equity' | 'balance' | 'unrealized_pnl' | 'deposits' | 'withdrawals' | 'realized_pnl' | 'fees' | 'funding'
> & {
  readonly start: string
  /** End of the interval, or the time of the response. */
  readonly valued_at: string
}

export interface EquityPage {
  readonly interval: '1h' | '1d'
  readonly equity: readonly EquityPoint[]
  readonly next_cursor: string | null
}
