/** From what a trader has in mind to a quantity: what is asked, and what is answered. */
import type { OrderType, Side } from '../domain/orders/order.ts'
import type { Decimal } from './decimals.ts'

type Amounts<Name extends string> = { readonly [Key in Name]: number } & {
  readonly [Key in `${Name}_e18_raw`]: string
}
type MaybeAmounts<Name extends string> = { readonly [Key in Name]: number | null } & {
  readonly [Key in `${Name}_e18_raw`]: string | null
}

/** `notional`: USDM. `units`: units. `available_margin`, `reduce_percentage`: per cent. */
export type SizingIntent = 'notional' | 'units' | 'available_margin' | 'max' | 'reduce_percentage'

export interface SizingQuestion {
  readonly marketId: number
  readonly side: Side
  readonly type: OrderType
  readonly intent: SizingIntent
  /** Left out or 0: the maximum alone. */
  readonly size?: Decimal
  readonly price?: Decimal
  readonly trigger?: Decimal
  readonly leverage?: number
  readonly reduceOnly?: boolean
}

export interface Refusal {
  readonly code: string
  readonly message: string
  readonly field: string
  readonly expected: string
  readonly received: string
  readonly nearest_valid: string | null
}

export type PriceSource = 'batch' | 'limit' | 'trigger' | 'oracle'

export type Estimated = Amounts<'quantity' | 'fillable_quantity'> &
  MaybeAmounts<'price' | 'notional' | 'fee' | 'realized_pnl'> & {
    readonly accepted: boolean
    readonly refusal: Refusal | null
    readonly price_source: PriceSource | null
    readonly reservation: Amounts<
      | 'opening_quantity'
      | 'closing_quantity'
      | 'reserved_price'
      | 'margin'
      | 'fee_allowance'
      | 'reserved_margin'
    > | null
    readonly position:
      | (Amounts<'size' | 'margin'> &
          MaybeAmounts<'entry_price' | 'effective_leverage' | 'margin_ratio' | 'liquidation_price'> & {
            readonly leverage: number
          })
      | null
  }

export type Estimate = Amounts<'size' | 'available'> & {
  readonly market_id: number
  readonly symbol: string
  readonly side: Side
  readonly order_type: OrderType
  readonly leverage: number
  readonly reduce_only: boolean
  readonly sizing_intent: SizingIntent
  readonly price_band: Amounts<'lowest' | 'highest' | 'oracle_price'>
  readonly max_leverage: number
  /** The largest quantity that a placement accepts now, and why one step more is refused. */
  readonly maximum: Amounts<'quantity' | 'notional' | 'reserved_margin'> & { readonly binding: Refusal }
  readonly by_leverage: readonly (Amounts<'quantity'> & {
    readonly leverage: number
    readonly binding: string
  })[]
  readonly estimate: Estimated | null
}

export type BudgetQuantity = Amounts<
  'usd_amount' | 'quantity' | 'estimated_clearing_price' | 'notional' | 'fillable_quantity' | 'fee'
> & {
  readonly market_id: number
  readonly symbol: string
  readonly side: Side
  readonly order_type: 'MARKET' | 'LIMIT'
  readonly price_source: PriceSource
}
