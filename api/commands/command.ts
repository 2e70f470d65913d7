/** What waits for a transaction: an account's placements and cancels, and whoever waits for their answer. */

import type { OrdersTable } from '../../db/schema.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { SignedOrder } from '../../domain/orders/order.ts'
import type { BalanceParts } from '../accounts/view.ts'
import { ApiError } from '../errors.ts'
import type { OrderRow } from '../orders/view.ts'

export interface Bookmark {
  readonly shard_id: string
  readonly shard_seq: string
}

export interface PlaceItem {
  readonly kind: 'place'
  readonly spec: MarketSpec
  readonly order: SignedOrder
}

export interface CancelItem {
  readonly kind: 'cancel'
  readonly hash: string
  readonly reason: string | null
}

/** Every live order of the account in the command's markets. */
export interface CancelAllItem {
  readonly kind: 'cancel_all'
  readonly reason: string | null
}

/** Refused before it came here; it keeps its place among the others. */
export interface RefusedItem {
  readonly kind: 'refused'
  readonly error: ApiError
}

export type Item = PlaceItem | CancelItem | CancelAllItem | RefusedItem

export interface Placed {
  readonly kind: 'placed'
  readonly order: OrderRow & Pick<OrdersTable, 'openable' | 'reserved_price'>
  readonly isDuplicate: boolean
  readonly read_after: Bookmark
}

export interface Cancelled {
  readonly kind: 'cancelled'
  readonly order: OrderRow
  /** It is cancelled, or will be when its batch has settled. */
  readonly cancelled: boolean
  readonly isDuplicate: boolean
  readonly read_after: Bookmark
}

export type CommandResult = Placed | Cancelled | ApiError

/** What became of a command. */
export interface Report {
  /** One per item, in their order; of a `cancel_all` one per order. */
  readonly outcomes: readonly CommandResult[]
  readonly balance: BalanceParts
  /** Bookmark of the whole command. */
  readonly read_after: Bookmark
}

/** The id that the trader gave to a command, so that it can be sent again. */
export interface ClientRequest {
  readonly id: string
  /** Of endpoint and body: the same id with another digest is another command. */
  readonly digest: Buffer
}

export const reused = ({ id }: ClientRequest): ApiError =>
  new ApiError('CLIENT_REQUEST_REUSED', {
    field: 'client_request_id',
    expected: 'the same body as before, or another id',
    received: id,
  })

/** `kept` is stored with the effect and answers the same command when it comes again. */
export interface Answer<Result> {
  readonly result: Result
  readonly kept: string | null
}

export interface Command<Result = unknown> {
  /** Cancels go first. */
  readonly kind: 'place' | 'cancel'
  readonly userId: number
  /** Every market that an item is in. Their locks are taken; of several, or none, the `accounts` shard's as well. */
  readonly markets: readonly MarketSpec[]
  readonly items: readonly Item[]
  /** All items or none. */
  readonly isAtomic: boolean
  readonly request: ClientRequest | null
  /** Pure. Throws an ApiError where the command as a whole is refused; then it has had no effect. */
  answer(report: Report): Answer<Result>
  /** The answer to the same command once more. `find` gives an order of its items as it is now. */
  replay(kept: string, find: (hash: string) => OrderRow | undefined): Result
  /** When it arrived, by the process's clock. */
  readonly arrivedAt: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export const hashesOf = ({ items }: Command): string[] =>
  items.flatMap((item) =>
    item.kind === 'place' ? [item.order.hash] : item.kind === 'cancel' ? [item.hash] : [],
  )
