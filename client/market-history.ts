/** Response bodies of market history and statistics, with the field names on the wire. */
import type { Amounts, MaybeAmounts } from './amount-fields.ts'
import type { MarketMode } from './market-responses.ts'
import type { Page } from './queries.ts'

export type CandleInterval =
  | '1m'
  | '3m'
  | '5m'
  | '15m'
  | '30m'
  | '1h'
  | '2h'
  | '4h'
  | '8h'
  | '12h'
  | '1d'
  | '1w'

export type PriceType = 'last' | 'mark' | 'oracle'

export type Candle = Amounts<'open' | 'high' | 'low' | 'close' | 'volume' | 'notional'> & {
  readonly start: string
  /** Number of auctions that matched. */
  readonly trades: number
  readonly fills: number
  /** True if no price exists in the interval; the candle repeats the previous close. */
  readonly is_gap: boolean
  /** True if the candle will not change again. */
  readonly is_final: boolean
}

export type CandlePage = Page & {
  readonly market_id: number
  readonly symbol: string
  readonly interval: CandleInterval
  readonly price_type: PriceType
  readonly candles: readonly Candle[]
}

type Day = Amounts<'volume_24h' | 'notional_24h'> &
  MaybeAmounts<
    | 'last_price'
    | 'open_24h'
    | 'high_24h'
    | 'low_24h'
    | 'change_24h'
    | 'change_fraction_24h'
    | 'mark_price'
    | 'oracle_price'
  > & {
    readonly market_id: number
    readonly symbol: string
    readonly type: 'perpetual' | 'future' | 'binary_future'
    readonly mode: MarketMode
    /** Start of the 24-hour window. */
    readonly since: string
    readonly trades_24h: number
    readonly fills_24h: number
  }

export type MarketStats = Day &
  Amounts<'open_interest'> &
  MaybeAmounts<'open_interest_notional' | 'funding_rate' | 'predicted_funding_rate'> & {
    readonly next_funding_at: string | null
  }

export type Ticker = Day & MaybeAmounts<'bid_price' | 'bid_quantity' | 'ask_price' | 'ask_quantity'>

export type OpenInterestPoint = Amounts<'open_interest'> &
  MaybeAmounts<'open_interest_notional'> & { readonly start: string }

export type HistoryKind = 'fills' | 'auctions' | 'candles' | 'funding'

/** A file of the public history; null fields: the file has not been requested yet. */
export interface HistoryFile {
  readonly kind: HistoryKind
  readonly market_id: number
  readonly symbol: string
  readonly day: string
  readonly path: string
  readonly rows: number | null
  /** Size of the compressed file. */
  readonly size: number | null
  readonly sha256: string | null
  /** Digest of the CSV content, which never changes. */
  readonly content_sha256: string | null
}

export interface HistoryPage {
  readonly files: readonly HistoryFile[]
  /** Null: files are kept forever. */
  readonly retention_days: number | null
  readonly next_cursor: string | null
}
