/**
 * Rows of the accounts' journal about commands with a `client_request_id`, from which a repeated command gets the same answer. Only the engine
 * writes them; the api stores the answers of its own transactions in a table.
 */
import type { OrderStatus, StatusReason } from '../orders/order.ts'
import type { Wei } from './wei.ts'

/** Any JSON. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A sequence in the journal of a market, or of the accounts (0). */
export interface StoredBookmark {
  readonly market_id: number
  readonly seq: number
}

/** An order when the command was decided: what changes after its acceptance. */
export interface StoredOrderState {
  readonly order_id: string
  readonly hash: string
  readonly status: OrderStatus
  readonly status_reason: StatusReason | null
  readonly closing_reason: StatusReason | null
  readonly note: string | null
  readonly filled: number
  readonly settling: number
  readonly openable: number
  readonly reserved: Wei
  readonly held: Wei
  readonly ended_at: number | null
}

export type StoredResult =
  | {
      readonly kind: 'placed'
      readonly is_duplicate: boolean
      readonly order: StoredOrderState
      readonly oracle: Wei | null
      readonly read_after: StoredBookmark
    }
  | {
      readonly kind: 'cancelled'
      readonly is_duplicate: boolean
      readonly cancelled: boolean
      readonly order_id: string
      readonly hash: string
      readonly read_after: StoredBookmark
    }
  /** `refusal`: why, as the engine or the caller before it has stated it. */
  | { readonly kind: 'refused'; readonly refusal: Json }
  /** `answer`: what the caller has found of an order that had been placed before and has ended. */
  | { readonly kind: 'answered'; readonly answer: Json }

export interface StoredBalance {
  readonly free: Wei
  readonly reserved: Wei
  readonly pending_withdrawal: Wei
  readonly position_margin: Wei
}

export interface RequestCompleted {
  readonly kind: 'request_completed'
  readonly user_id: number
  readonly client_request_id: string
  /** Digest of the request, in hex: the same id with another digest is another command. */
  readonly digest: string
  /** One per item, in their order. */
  readonly results: readonly StoredResult[]
  readonly balance: StoredBalance
  readonly read_after: StoredBookmark
  readonly at: number
}

/** Requests that were completed with rows up to `up_to` are durable for readers, or too old to be repeated: states no longer have them. */
export interface RequestsReleased {
  readonly kind: 'requests_released'
  readonly up_to: number
}

export type RequestRow = RequestCompleted | RequestsReleased
