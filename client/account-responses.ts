/** The response bodies about an account's collateral and credential, with the field names on the wire. */
import type { Amounts, MaybeAmounts } from './amount-fields.ts'

export type TransactionType =
  | 'deposit'
  | 'withdrawal'
  | 'adjust_leverage'
  | 'funding_payment'
  | 'add_margin'
  | 'remove_margin'
  | 'liquidation'
  | 'market_delisting_payout'

/** A movement of an account's collateral. `amount` is never negative; the deltas have signs. */
export type Transaction = Amounts<'amount' | 'available_margin_delta'> &
  MaybeAmounts<'funding_payment_delta'> & {
    readonly id: string
    readonly transaction_type: TransactionType
    readonly asset: 'USDM'
    readonly market_id: number | null
    readonly market_symbol: string | null
    readonly tx_hash: string | null
    readonly log_index: number | null
    readonly block_number: number | null
    readonly created_at: string
  }

/** One on-chain withdrawal request. */
export type Withdrawal = Amounts<'amount'> &
  MaybeAmounts<'paid_amount'> & {
    readonly withdrawal_id: string
    readonly status: 'REQUESTED' | 'PAYABLE' | 'PAID' | 'USED'
    readonly requested_at: string
    readonly payable_at: string | null
    readonly tx_hash: string
    readonly log_index: number
    readonly block_number: number
    readonly paid_at: string | null
    readonly paid_tx_hash: string | null
  }

export type WithdrawalPage = Amounts<'pending'> & {
  /** Earliest payout time of pending withdrawals; null if none is pending. */
  readonly payable_at: string | null
  readonly withdrawals: readonly Withdrawal[]
  readonly next_cursor: string | null
}

export interface RateLimit {
  readonly bucket:
    | ('reads' | 'orders' | 'batches' | 'cancels' | 'faucet')
    | ('auth' | 'relays' | 'adjustments' | 'proofs')
  readonly limit: number
  readonly window_seconds: number
  readonly remaining: number
  readonly reset_seconds: number
}

export interface ApiKeyFacts {
  readonly prefix: string
  readonly scope: 'trade' | 'read'
  readonly allowed_addresses: readonly string[] | null
  readonly created_at: string
  readonly last_used_at: string | null
}

export interface ApiKey extends ApiKeyFacts {
  readonly name: string
}

export interface Me {
  readonly user_id: number
  readonly address: string
  readonly addresses: readonly string[]
  readonly credential: 'api_key' | 'identity_token'
  readonly scope: 'trade' | 'read'
  /** Name of the API key that sent the request; null for an identity token. */
  readonly api_key_name: string | null
  /** The key named `default`. */
  readonly api_key: ApiKeyFacts | null
  readonly limits: readonly RateLimit[]
}
