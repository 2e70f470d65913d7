/** The response bodies that describe a market, with the field names on the wire. */
import type { Side } from '../domain/orders/order.ts'
import type { Amounts, MaybeAmounts } from './amount-fields.ts'

/** An announced change of a market. */
export interface MarketChange {
  readonly kind: 'parameters' | 'mode' | 'wind_down' | 'fees'
  readonly active_from: string
  readonly mode: MarketMode | null
  /** New values by field name of the market. */
  readonly values: Readonly<Record<string, number | string>>
}

/** Mode of a market: which commands it accepts. */
export type MarketMode = 'open' | 'cancel_only' | 'halted' | 'settling' | 'settled'

export type Market = Amounts<
  | 'tick_size'
  | 'step_size'
  | 'min_order_size'
  | 'max_order_size'
  | 'min_order_price'
  | 'initial_margin_requirement'
  | 'maintenance_margin_requirement'
  | 'mtb_long'
  | 'mtb_short'
  | 'maker_fee'
  | 'taker_fee'
  | 'price_protection'
> &
  MaybeAmounts<
    'oracle_price' | 'mark_price' | 'last_price' | 'next_price_protection' | 'final_price' | 'payout_ratio'
  > & {
    readonly market_id: number
    readonly symbol: string
    readonly type: 'perpetual' | 'future' | 'binary_future'
    readonly trading_enabled: boolean
    readonly mode: MarketMode
    readonly fees: Amounts<'maker' | 'taker' | 'highest_maker' | 'highest_taker'> & {
      readonly until: string | null
      readonly free_until: string | null
    }
    readonly upcoming_change: MarketChange | null
    /** Changes after the next change, earliest first. */
    readonly later_changes: readonly MarketChange[]
    readonly expires_at: string | null
    readonly settling_at: string | null
    /** Close time: the earlier of expiry and scheduled close. */
    readonly closes_at: string | null
    readonly dispute_window_ms: number
    readonly final_price_at: string | null
    /** End of the window in which another report can replace `final_price`. */
    readonly dispute_until: string | null
    readonly ended_at: string | null
    readonly ended_by: 'finalized' | 'frozen' | null
    /** Start of the payout of positions. */
    readonly claims_from: string | null
    readonly session: 'regular' | 'closed' | 'continuous'
    readonly next_session_change: string | null
    readonly chain_id: number
    readonly trader_address: string
    readonly max_leverage: number
    /** Time from which auctions apply `next_price_protection`; null if none is announced. */
    readonly next_price_protection_at: string | null
    /** Price band around the last oracle price; null before the first. */
    readonly price_band: Amounts<'lowest' | 'highest'> | null
    readonly oracle_price_at: string | null
    readonly last_batch_id: number | null
    /** State of the index feed; null if no price was ever published. */
    readonly oracle: MarketOracle | null
    /** Null for a market without funding. */
    readonly funding: MarketFunding | null
  }

export interface MarketOracle {
  readonly status: 'live' | 'waiting' | 'halted' | 'stale'
  /** Null while the feed is live. */
  readonly reason: string | null
  readonly since: string | null
  readonly observed_at: string | null
  readonly sources: readonly (MaybeAmounts<'price'> & {
    readonly source: string
    readonly observed_at: string | null
    /** Null if the reading counts. */
    readonly dropped: string | null
    readonly detail: string | null
  })[]
}

/** Rates are fractions of the oracle price per hour, positive if longs pay. `funding_rate` is null while no rate is valid. */
export type MarketFunding = Amounts<'premium_average' | 'funding_cap'> &
  MaybeAmounts<'funding_rate' | 'rate_per_step' | 'predicted_rate' | 'impact_notional'> & {
    readonly effective_at: string | null
    readonly valid_until: string | null
    readonly next_update_at: string | null
  }

export type FundingRate = Amounts<'funding_rate' | 'rate_per_step' | 'funding_index' | 'oracle_price'> & {
  readonly market_id: number
  readonly symbol: string
  readonly action_id: number
  readonly effective_at: string
  readonly valid_until: string
  readonly oracle_price_at: string
  readonly tx_hash: string
}

/** Open interest, backstop, deleveragings and deficits of a market. Notionals are at the oracle price. */
export type MarketRisk = Amounts<'open_interest'> &
  MaybeAmounts<'oracle_price' | 'open_interest_notional'> & {
    readonly market_id: number
    readonly symbol: string
    /** Null if the market has none. */
    readonly backstop:
      | (Amounts<'capacity' | 'size' | 'margin' | 'free_balance'> &
          MaybeAmounts<'used' | 'available' | 'margin_ratio'>)
      | null
    readonly inheritances: Amounts<'quantity'> & { readonly count: number; readonly failed: number }
    readonly deleveragings: Amounts<'quantity' | 'notional' | 'payouts'> & { readonly count: number }
    readonly deficits: Amounts<'reported' | 'covered'> & { readonly count: number }
    /** Number of positions in liquidation. */
    readonly running_liquidations: number
    /**
     * End of the grace after a bank pause, in which no position with equity is liquidated; null if none is ahead.
     */
    readonly liquidation_paused_until: string | null
  }

/** A mined step of a liquidation, without its account. */
export type Liquidation = Amounts<'quantity'> &
  MaybeAmounts<'price' | 'notional' | 'oracle_price'> & {
    readonly liquidation_id: string
    readonly market_id: number
    readonly symbol: string
    readonly kind: 'forced_fill' | 'inherited' | 'deleveraged'
    /** Side of the position. */
    readonly side: Side
    readonly oracle_price_at: string | null
    /** Batch of a forced fill. */
    readonly batch_id: number | null
    readonly part: number | null
    readonly tx_hash: string
    readonly block_number: number
    readonly created_at: string
  }

/** A decision on a liquidation of the account, or on a deleveraging in which it is a counterparty. */
export interface LiquidationDecision {
  readonly step_id: string
  readonly liquidation_id: string
  readonly market_id: number
  readonly symbol: string
  readonly role: 'owner' | 'counterparty'
  readonly step:
    | 'started'
    | 'forced'
    | 'widened'
    | 'inherit_queued'
    | 'deleverage_queued'
    | 'failed'
    | 'ended'
  readonly reason: string
  /** Id of the forced order; null if there is none, and for a counterparty. */
  readonly order_id: string | null
  readonly widenings: number
  /** Null if the decision used no report. */
  readonly evidence:
    | (Amounts<'oracle_price' | 'funding_index' | 'threshold'> &
        MaybeAmounts<'margin_ratio' | 'size' | 'entry_notional' | 'margin'> & {
          readonly as_of: string
          readonly oracle_price_at: string
        })
    | null
  readonly legs: readonly (Amounts<'quantity' | 'score'> & { readonly rank: number })[]
  readonly created_at: string
}

/**
 * Proof of a batch. `npm run cb -- batch verify` recomputes `statement`; the OpenAPI document describes its fields.
 */
export interface BatchProof {
  readonly market_id: number
  readonly symbol: string
  readonly batch_id: number
  readonly status: 'SETTLING' | 'SETTLED' | 'VOIDED'
  readonly digest: string
  readonly statement: {
    readonly rule_version: number
    readonly orders: readonly { readonly commitment: string }[]
    readonly [field: string]: unknown
  }
  readonly parts: readonly {
    readonly part: number
    readonly status: 'settling' | 'settled' | 'failed'
    readonly transaction_hash: string | null
    readonly fills: readonly {
      /** Place in `statement.orders`, from 1. */
      readonly order: number
      readonly steps: number
      readonly taker_steps: number
      readonly order_hash: string | null
      readonly salt: string | null
    }[]
  }[]
}

/**
 * Commitment to one of the trader's own orders in a batch. The batch proof contains it if the order could trade.
 */
export interface OrderCommitment {
  readonly order_id: string
  readonly order_hash: string
  readonly market_id: number
  readonly batch_id: number
  readonly salt: string
  readonly commitment: string
}

export interface ServerTime {
  readonly time: string
  readonly unix_ms: number
  readonly unix_seconds: number
}

/** Ages are null before the first block or report. */
export interface MaintenanceWindow {
  readonly announcement_id: number
  readonly title: string
  /** Null: the whole exchange. */
  readonly market_id: number | null
  readonly starts_at: string
  readonly ends_at: string
  readonly active: boolean
}

export interface Announcement {
  readonly announcement_id: number
  readonly kind: 'notice' | 'maintenance'
  readonly title: string
  readonly body: string
  /** Null: the whole exchange. */
  readonly market_id: number | null
  readonly starts_at: string | null
  readonly ends_at: string | null
  readonly created_at: string
  readonly withdrawn_at: string | null
}

export interface AnnouncementPage {
  readonly announcements: readonly Announcement[]
  readonly next_cursor: string | null
}

export interface ServiceStatus {
  readonly status: 'ok' | 'degraded'
  readonly time: string
  readonly chain: {
    readonly chain_id: number
    readonly block: number | null
    readonly seen_ms_ago: number | null
    readonly fresh: boolean
  }
  /** Announced maintenance windows that have not ended. */
  readonly maintenance: readonly MaintenanceWindow[]
  readonly markets: readonly {
    readonly market_id: number
    readonly symbol: string
    readonly mode: MarketMode
    readonly oracle_age_ms: number | null
    readonly oracle_fresh: boolean
    readonly last_batch_id: number
    /** Whether orders are accepted. */
    readonly placements: boolean
    /** Number of journal sequences by which reads are behind. */
    readonly read_model_lag: number
  }[]
}

/** Volume, fills and orders of a builder on a day (UTC). */
export interface BuilderDay extends Amounts<'volume'> {
  readonly builder: string
  readonly day: string
  readonly fills: number
  readonly orders: number
}

export interface BuilderPage {
  readonly builders: readonly BuilderDay[]
  readonly next_cursor: string | null
}
