/** What waits in a lane: a placement or a cancel, and whoever waits for its answer. */
import type { MarketSpec } from '../../domain/market.ts'
import type { SignedOrder } from '../../domain/order.ts'
import type { OrderRow } from '../views/order.ts'
import type { BalanceParts } from '../views/position.ts'

export interface Bookmarked {
  readonly read_after: { readonly shard_id: string; readonly shard_seq: string }
}

export interface Placed extends Bookmarked {
  readonly order: OrderRow
  readonly isDuplicate: boolean
  readonly balance: BalanceParts
}

export interface Cancelled extends Bookmarked {
  readonly order: OrderRow
  readonly cancelled: boolean
  readonly isDuplicate: boolean
}

export interface Waiting<Result> {
  readonly spec: MarketSpec
  readonly userId: number
  /** When it arrived, by the process's clock. */
  readonly arrivedAt: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export interface PlaceCommand extends Waiting<Placed> {
  readonly kind: 'place'
  readonly order: SignedOrder
}

export interface CancelCommand extends Waiting<Cancelled> {
  readonly kind: 'cancel'
  readonly hash: string
  readonly reason: string | null
}

export type Command = PlaceCommand | CancelCommand

const saltKey = ({ maker, salt }: SignedOrder): string => `${maker}:${salt}`

export const keysOf = (command: Command): readonly string[] =>
  command.kind === 'place' ? [command.order.hash, saltKey(command.order)] : [command.hash]
