/** Commands of one account, and what the engine has made of them. */

import type { OrdersTable } from '../../db/schema.ts'
import type { IfFilled } from '../../domain/exchange/decide/orders/command.ts'
import type { RequestCompleted } from '../../domain/journal/request-rows.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { SignedOrder } from '../../domain/orders/order.ts'
import type { OrderFlags } from '../../domain/orders/order-flags.ts'
import type { Price, Steps } from '../../domain/units.ts'
import type { BalanceParts } from '../accounts/view.ts'
import { ApiError } from '../errors.ts'
import type { OrderRow } from '../orders/view.ts'
import type { StoredOrder } from './stored-orders.ts'

export interface Bookmark {
  readonly shard_id: string
  readonly shard_seq: string
}

/** A signed order, as a placement or a replacement brings it. */
export interface NewOrder {
  readonly spec: MarketSpec
  readonly order: SignedOrder
  /** The trader's label, which no signature covers. */
  readonly clientOrderId: string | null
  readonly flags: OrderFlags
}

export interface PlaceItem extends NewOrder {
  readonly kind: 'place'
}

export interface ReplaceItem extends NewOrder {
  readonly kind: 'replace'
  /** The order that is replaced, by its hash or by its label. */
  readonly target: { readonly hash: string } | { readonly label: string }
  readonly ifFilled: IfFilled
}

export interface CancelItem {
  readonly kind: 'cancel'
  readonly hash: string
  readonly reason: string | null
}

/** Rejected before it was sent; it keeps its index among the items. */
export interface RefusedItem {
  readonly kind: 'refused'
  readonly error: ApiError
}

export type Item = PlaceItem | ReplaceItem | CancelItem | RefusedItem

export interface Placed {
  readonly kind: 'placed'
  readonly order: OrderRow & Pick<OrdersTable, 'openable' | 'reserved_price'>
  readonly isDuplicate: boolean
  /** The oracle price on which the command was decided; null if the market has none. */
  readonly oracle: Price | null
  readonly read_after: Bookmark
  /** The account's position, for a reduce-only order: in steps, settling fills included, long positive. */
  readonly position?: Steps
  /** The order that a new replacement has replaced, as the command leaves it. */
  readonly replaced?: StoredOrder
}

export interface Cancelled {
  readonly kind: 'cancelled'
  readonly order: OrderRow
  /** The order is cancelled, or will be once its batch has settled. */
  readonly cancelled: boolean
  readonly isDuplicate: boolean
  readonly read_after: Bookmark
}

export type ItemResult = Placed | Cancelled | ApiError

/** Results of the items of a command, with the account's balance after it. */
export interface CommandReport {
  /** One per item, in the order of the items; one per cancelled order for a cancel of all orders. */
  readonly itemResults: readonly ItemResult[]
  readonly balance: BalanceParts
  /** Bookmark of the whole command. */
  readonly read_after: Bookmark
}

/** The id that the trader assigned to a command, so that the command can be repeated safely. */
export interface ClientRequest {
  readonly id: string
  /** Digest of endpoint and body: the same id with another digest is another command. */
  readonly digest: Buffer
}

/** The results of a request as the engine stores them. */
export type StoredRequest = Pick<RequestCompleted, 'results' | 'balance' | 'read_after'>

export const reusedRequest = ({ id }: Pick<ClientRequest, 'id'>): ApiError =>
  new ApiError('CLIENT_REQUEST_REUSED', {
    field: 'client_request_id',
    expected: 'the same body as before, or another id',
    received: id,
  })

/** Placements or cancels that take effect or fail as one unit. */
export interface Command {
  readonly kind: 'place' | 'cancel'
  readonly userId: number
  /** Address of the account. */
  readonly maker: string
  readonly items: readonly Item[]
  /** Whether one rejected item rejects all items. */
  readonly isAtomic: boolean
  readonly request: ClientRequest | null
}

/** Cancels every live order of the account, in one market or, with null, in all. */
export interface CancelAll {
  readonly userId: number
  /** Address of the account. */
  readonly maker: string
  readonly marketId: number | null
  readonly reason: string | null
  /** Markets of which the read model lacks rows: the bookmark names those in which orders of the account have ended, too. */
  readonly covers: readonly number[]
}

/** Result of a command: from this execution, or stored by an earlier one with the same `client_request_id`. */
export type Executed = { readonly report: CommandReport } | { readonly stored: StoredRequest }

export const hashesOf = ({ items }: Pick<Command, 'items'>): string[] =>
  items.flatMap((item) =>
    item.kind === 'cancel' ? [item.hash] : item.kind === 'refused' ? [] : [item.order.hash],
  )
