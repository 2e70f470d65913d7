/**
 * The stored answer to a batch of placements, from which a repeated batch gets the same answer. For an order that the batch placed it
 * stores only the fields that change later; all other fields are read from the order's row, which is never deleted. The engine stores the results of
 * its items instead.
 */
import type {
  Json,
  RequestCompleted,
  StoredResult as RequestResult,
  StoredBookmark,
  StoredOrderState,
} from '../../domain/journal/request-rows.ts'
import type { OrderStatus } from '../../domain/orders/order.ts'
import type { MarketId, Price, Seq } from '../../domain/units.ts'
import { balanceView } from '../accounts/view.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { type Specs, specOf } from '../markets/market-directory.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import type { Order } from '../orders/schema.ts'
import { type OrderRow, orderView } from '../orders/view.ts'
import type { Bookmark, CommandReport, Item, ItemResult, Placed, PlaceItem } from './command.ts'
import type { EndedDuplicate } from './engine-command.ts'
import { itemRefusalError } from './engine-refusals.ts'
import type { StoredOrder } from './group-state.ts'
import type { ShardEpochs } from './shard-epochs.ts'

/** The results of a request as the engine stores them. */
export type StoredRequest = Pick<RequestCompleted, 'results' | 'balance' | 'read_after'>

interface StoredPlacement {
  readonly order_hash: string
  readonly status: OrderStatus
  readonly reserved: string
  readonly read_after: Bookmark
}

type StoredResult =
  | StoredPlacement
  /** The order had been placed before; its state at the time of this batch cannot be derived from its row, so it is stored. */
  | { readonly order: Order; readonly is_duplicate: true; readonly read_after: Bookmark }
  | { readonly error: ItemError }

export interface StoredBatch
  extends Pick<PlaceBatchAnswer, 'client_request_id' | 'mode' | 'balance' | 'read_after'> {
  readonly results: readonly StoredResult[]
}

const isPlaced = (result: StoredResult): result is StoredPlacement => 'order_hash' in result

/** Whether the engine has stored the answer. */
export const isStoredRequest = (
  stored: { readonly read_after: object } | StoredRequest,
): stored is StoredRequest => 'market_id' in stored.read_after

/** Hashes of the orders of a stored request. */
export const hashesOfRequest = ({ results }: StoredRequest): string[] =>
  results.map(hashOfResult).filter((hash) => hash !== null)

function hashOfResult(result: RequestResult): string | null {
  switch (result.kind) {
    case 'placed':
      return result.order.hash
    case 'cancelled':
      return result.hash
    case 'answered':
      return (result.answer as unknown as EndedDuplicate).order_hash
    case 'refused':
      return null
  }
}

/** An item of a stored request that was refused, as answers show it. */
export function storedItemError(refusal: Json): ItemError {
  const { code } = refusal as { readonly code: string }
  if (code === 'FROM_API') return (refusal as { readonly refusal: unknown }).refusal as ItemError
  return itemError(itemRefusalError(refusal as unknown as Parameters<typeof itemRefusalError>[0]))
}

/** Markets, orders and bookmarks for the conversion of a stored request. */
export interface RequestContext {
  readonly specs: Specs
  /** The current rows of the request's orders. */
  readonly find: (hash: string) => StoredOrder
  readonly bookmark: ShardEpochs['bookmark']
}

/** The stored batch of a request that the engine has stored. */
export function batchOfRequest(
  { results, balance, read_after }: StoredRequest,
  { client_request_id, mode }: Pick<PlaceBatchBody, 'client_request_id' | 'mode'>,
  context: RequestContext,
): StoredBatch {
  return {
    client_request_id,
    mode,
    results: results.map((result) => batchResult(result, context)),
    balance: balanceView({
      free: BigInt(balance.free),
      reserved: BigInt(balance.reserved),
      pendingWithdrawal: BigInt(balance.pending_withdrawal),
      positionMargin: BigInt(balance.position_margin),
    }),
    read_after: toBookmark(context, read_after),
  }
}

export const toBookmark = (
  { bookmark }: Pick<RequestContext, 'bookmark'>,
  { market_id, seq }: StoredBookmark,
): Bookmark => bookmark({ marketId: market_id as MarketId, seq: seq as Seq })

function batchResult(result: RequestResult, context: RequestContext): StoredResult {
  const { specs, find } = context
  switch (result.kind) {
    case 'refused':
      return { error: storedItemError(result.refusal) }
    case 'answered': {
      const { order_hash, read_after } = result.answer as unknown as EndedDuplicate
      const order = find(order_hash)
      const view = orderView(specOf(specs, order), order, NOT_IN_BOOK)
      return { order: view, is_duplicate: true, read_after: toBookmark(context, read_after) }
    }
    case 'placed': {
      const { order, is_duplicate, oracle, read_after } = result
      if (!is_duplicate) {
        const { hash: order_hash, status, reserved } = order
        return { order_hash, status, reserved, read_after: toBookmark(context, read_after) }
      }
      const row = asDecided(find(order.hash), order)
      const view = orderView(specOf(specs, row), row, oracle === null ? null : (BigInt(oracle) as Price))
      return { order: view, is_duplicate: true, read_after: toBookmark(context, read_after) }
    }
    case 'cancelled':
      throw new Error('a batch of placements cancels nothing')
  }
}

/** An order that has ended is in no book. */
const NOT_IN_BOOK = null

/** The order in its state when the request was decided. Its average price and its fee are the present ones. */
function asDecided(stored: StoredOrder, { reserved, held, ...then }: StoredOrderState): StoredOrder {
  const average =
    stored.filled === 0 ? 0n : (stored.filled_value * BigInt(then.filled)) / BigInt(stored.filled)
  return {
    ...stored,
    ...then,
    reserved: BigInt(reserved),
    held: BigInt(held),
    filled_value: average,
  }
}

/** Hashes of the orders that the batch placed. */
export const placedHashes = ({ results }: StoredBatch): string[] =>
  results.filter(isPlaced).map(({ order_hash }) => order_hash)

export function toStoredBatch(
  { client_request_id, mode }: PlaceBatchBody,
  items: readonly Item[],
  { itemResults, balance, read_after }: CommandReport,
): StoredBatch {
  const results = itemResults.map((itemResult, at) => toStoredResult(items[at] as Item, itemResult))
  return { client_request_id, mode, results, balance: balanceView(balance), read_after }
}

function toStoredResult(item: Item, itemResult: ItemResult): StoredResult {
  if (itemResult instanceof ApiError) return { error: itemError(itemResult) }
  const { order, isDuplicate, read_after, oracle } = itemResult as Placed
  if (isDuplicate)
    return { order: orderView((item as PlaceItem).spec, order, oracle), is_duplicate: true, read_after }
  const { hash, status, reserved } = order
  return { order_hash: hash, status, reserved: String(reserved), read_after }
}

function batchAnswer(
  { results, ...batch }: StoredBatch,
  is_duplicate: boolean,
  orderOf: (result: StoredPlacement, at: number) => Order,
): PlaceBatchAnswer {
  const refused = results.filter((result) => 'error' in result).length
  const views = results.map((result, at) =>
    isPlaced(result)
      ? { order: orderOf(result, at), is_duplicate: false, read_after: result.read_after }
      : result,
  )
  return { ...batch, is_duplicate, accepted: results.length - refused, refused, results: views }
}

/** An accepted order takes part at its own limit at the oracle price of its acceptance, so no price is needed. */
const AT_ACCEPTANCE = null

/** The answer to a batch that has just been executed. */
export const firstAnswer = (
  batch: StoredBatch,
  items: readonly Item[],
  { itemResults }: CommandReport,
): PlaceBatchAnswer =>
  batchAnswer(batch, false, (_, at) =>
    orderView((items[at] as PlaceItem).spec, (itemResults[at] as Placed).order, AT_ACCEPTANCE),
  )

/** The fields of an order that never change. */
type ImmutableOrderRow = Omit<
  OrderRow,
  | 'status'
  | 'reserved'
  | 'status_reason'
  | 'note'
  | 'filled'
  | 'filled_value'
  | 'settling'
  | 'fee'
  | 'protection_price'
  | 'triggered'
  | 'updated_at'
>

/** The answer to a repetition of the batch. `find` returns the current row of an order that the batch placed. */
export const replayedAnswer = (
  batch: StoredBatch,
  specs: Specs,
  find: (hash: string) => ImmutableOrderRow | undefined,
): PlaceBatchAnswer =>
  batchAnswer(batch, true, (result) => {
    const stored = find(result.order_hash) as ImmutableOrderRow
    return orderView(specOf(specs, stored), asAccepted(stored, result), AT_ACCEPTANCE)
  })

/** The order in its state at acceptance. */
const asAccepted = (stored: ImmutableOrderRow, { status, reserved }: StoredPlacement): OrderRow => ({
  ...stored,
  status,
  reserved: BigInt(reserved),
  status_reason: null,
  note: null,
  filled: 0,
  filled_value: 0n,
  settling: 0,
  fee: 0n,
  protection_price: null,
  triggered: null,
  updated_at: stored.accepted_at,
})
