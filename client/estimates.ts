/** The request and response of an order estimate, and the response of a quantity calculation. */
import type { OrderType, Side } from '../domain/orders/order.ts'
import type { Decimal } from './decimals.ts'
import type { Amounts, ExpectedProtection, MaybeAmounts } from './responses.ts'

/**
 * Unit of `size`: `notional` in USDM, `units` in units of the underlying, `available_margin` and
 * `reduce_percentage` in per cent.
 */
export type SizingIntent = 'notional' | 'units' | 'available_margin' | 'max' | 'reduce_percentage'

export interface EstimateRequest {
  readonly marketId: number
  readonly side: Side
  readonly type: OrderType
  readonly intent: SizingIntent
  /** If absent or 0, only the maximum is computed. */
  readonly size?: Decimal
  readonly price?: Decimal
  readonly trigger?: Decimal
  readonly leverage?: number
  readonly reduceOnly?: boolean
}

/** Check that an order fails. */
export interface EstimateRejection {
  readonly code: string
  readonly message: string
  readonly field: string
  readonly expected: string
  readonly received: string
  readonly nearest_valid: string | null
  /** For MARGIN_REQUIREMENT: the highest leverage that passes at the same price. */
  readonly nearest_valid_leverage: number | null
}

export type PriceSource = 'batch' | 'limit' | 'trigger' | 'oracle'

export type EstimatedOrder = Amounts<'quantity' | 'fillable_quantity'> &
  MaybeAmounts<'price' | 'notional' | 'fee' | 'realized_pnl'> & {
    readonly accepted: boolean
    readonly refusal: EstimateRejection | null
    readonly price_source: PriceSource | null
    readonly reservation: Amounts<
      | 'opening_quantity'
      | 'closing_quantity'
      | 'reserved_price'
      | 'margin'
      | 'fee_allowance'
      | 'fee_allowance_price'
      | 'reserved_margin'
    > | null
    readonly position:
      | (Amounts<'size' | 'margin'> &
          MaybeAmounts<'entry_price' | 'effective_leverage' | 'margin_ratio' | 'liquidation_price'> & {
            readonly leverage: number
          })
      | null
  }

export type Estimate = Amounts<'size' | 'available'> &
  ExpectedProtection & {
    readonly market_id: number
    readonly symbol: string
    readonly side: Side
    readonly order_type: OrderType
    readonly leverage: number
    readonly reduce_only: boolean
    readonly sizing_intent: SizingIntent
    readonly price_band: Amounts<'lowest' | 'highest' | 'oracle_price'>
    readonly max_leverage: number
    /** Largest quantity that a placement accepts now, and why one step more is rejected. */
    readonly maximum: Amounts<'quantity' | 'notional' | 'reserved_margin'> & {
      readonly binding: EstimateRejection
    }
    readonly by_leverage: readonly (Amounts<'quantity'> & {
      readonly leverage: number
      readonly binding: string
    })[]
    readonly estimate: EstimatedOrder | null
  }

export type QuantityForBudget = Amounts<
  'usd_amount' | 'quantity' | 'estimated_clearing_price' | 'notional' | 'fillable_quantity' | 'fee'
> & {
  readonly market_id: number
  readonly symbol: string
  readonly side: Side
  readonly order_type: 'MARKET' | 'LIMIT'
  readonly price_source: PriceSource
}
