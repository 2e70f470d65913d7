/**
 * Rows about commands with a `client_request_id`: a repeated command gets the stored answer. Only the engine writes
 * them; the API stores answers of its own transactions in a table.
 */
import type { OrderStatus, StatusReason } from '../orders/order.ts'
import type { Wei } from './wei.ts'

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A sequence in a market's journal, or in the accounts journal (0). */
export interface StoredBookmark {
  readonly market_id: number
  readonly seq: number
}

/** State of an order when the command was decided: the fields that change after acceptance. */
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
  /** `refusal`: reason stated by the engine or by the caller before it. */
  | { readonly kind: 'refused'; readonly refusal: Json }
  /** `answer`: the caller's result for an order that was placed before and has ended. */
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
  /** Digest of the request in hex. The same id with a different digest is a different command. */
  readonly digest: string
  /** One result per item, in item order. */
  readonly results: readonly StoredResult[]
  readonly balance: StoredBalance
  readonly read_after: StoredBookmark
  readonly at: number
}

/**
 * States have dropped the requests completed with rows up to `up_to`: readers have them durably, or they are
 * too old to repeat.
 */
export interface RequestsReleased {
  readonly kind: 'requests_released'
  readonly up_to: number
}

export type RequestRow = RequestCompleted | RequestsReleased
