/** Responses of the history of positions, of realized profits and of equity. */
import type { Side } from '../domain/orders/order.ts'
import type { Amounts } from './amount-fields.ts'

/** A position from its opening on. `average_exit_price`: where it was taken over, the price at which its margin was lost. */
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
  /** Null while it is open. */
  readonly ending: 'trade' | 'liquidation' | 'deleveraging' | 'inheritance' | 'settlement' | null
  readonly opened_at: string
  readonly closed_at: string | null
}

/** What an interval realized. `net_pnl`: less fees, with funding. */
export type ProfitPoint = Amounts<'realized_pnl' | 'fees' | 'funding' | 'net_pnl'> & {
  readonly start: string
}

export interface ProfitPage {
  readonly interval: '1h' | '1d'
  readonly pnl: readonly ProfitPoint[]
  readonly next_cursor: string | null
}

/** The equity at `valued_at`, and what happened in the interval. */
export type EquityPoint = Amounts<
  'equity' | 'balance' | 'unrealized_pnl' | 'deposits' | 'withdrawals' | 'realized_pnl' | 'fees' | 'funding'
> & {
  readonly start: string
  /** The end of the interval, or the time of the answer. */
  readonly valued_at: string
}

export interface EquityPage {
  readonly interval: '1h' | '1d'
  readonly equity: readonly EquityPoint[]
  readonly next_cursor: string | null
}
