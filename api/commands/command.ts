/** A command: placements or cancels of one account that commit or fail as one unit, with the promise of their answer. */

import type { ShardHead } from '../../db/journal.ts'
import type { OrdersTable } from '../../db/schema.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { SignedOrder } from '../../domain/orders/order.ts'
import type { Price } from '../../domain/units.ts'
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
  /** The trader's label, which no signature covers. */
  readonly clientOrderId: string | null
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
  /** The command fails with MarketsMissed if the account has live orders in other markets. */
  readonly isEverywhere: boolean
}

/** The account has placed orders in further markets since the markets of its cancel were read. The cancel is submitted again. */
export class MarketsMissed extends ApiError {
  constructor() {
    super('OVERLOADED', {}, '1')
  }
}

/** Rejected before it was queued; it keeps its index among the items. */
export interface RefusedItem {
  readonly kind: 'refused'
  readonly error: ApiError
}

export type Item = PlaceItem | CancelItem | CancelAllItem | RefusedItem

export interface Placed {
  readonly kind: 'placed'
  readonly order: OrderRow & Pick<OrdersTable, 'openable' | 'reserved_price'>
  readonly isDuplicate: boolean
  /** The oracle price on which the command was decided; null if the market has none. */
  readonly oracle: Price | null
  readonly read_after: Bookmark
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
  /** One per item, in the order of the items; one per cancelled order for a `cancel_all`. */
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

export const reusedRequest = ({ id }: ClientRequest): ApiError =>
  new ApiError('CLIENT_REQUEST_REUSED', {
    field: 'client_request_id',
    expected: 'the same body as before, or another id',
    received: id,
  })

/** `stored` is written in the transaction of the command and answers a repetition of it. */
export interface CommandAnswer<Result> {
  readonly result: Result
  readonly stored: string | null
}

export interface Command<Result = unknown> {
  /** Cancels are executed before placements. */
  readonly kind: 'place' | 'cancel'
  readonly userId: number
  /** Markets of all items; the transaction locks them. With several markets or none it locks the `accounts` shard as well. */
  readonly markets: readonly MarketSpec[]
  /** Heads of further journals that the command's bookmark covers. Their shards are not locked. */
  readonly covers: readonly ShardHead[]
  readonly items: readonly Item[]
  /** Whether one rejected item rejects all items. */
  readonly isAtomic: boolean
  readonly request: ClientRequest | null
  /** Pure. Throws an ApiError if the whole command is rejected; the command then has no effect. */
  answer(report: CommandReport): CommandAnswer<Result>
  /** The answer to a repetition of the command. `find` returns the current state of an order of its items. */
  replay(stored: string, find: (hash: string) => OrderRow | undefined): Result
  /** Time of arrival by the clock of this process. */
  readonly arrivedAt: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** Whether the command locks the `accounts` shard, in which the row behind its bookmark is written. */
export const isSpanning = ({ markets, covers }: Pick<Command, 'markets' | 'covers'>): boolean =>
  markets.length !== 1 || covers.length > 0

export const hashesOf = ({ items }: Pick<Command, 'items'>): string[] =>
  items.flatMap((item) =>
    item.kind === 'place' ? [item.order.hash] : item.kind === 'cancel' ? [item.hash] : [],
  )
