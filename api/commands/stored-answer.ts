/**
 * Answers to batches of placements and their repetitions. The engine stores only fields that change later; other fields
 * are read from the order's row, which is never deleted.
 */
import type {
  Json,
  StoredResult as RequestResult,
  StoredBookmark,
  StoredOrderState,
} from '../../domain/journal/request-rows.ts'
import type { MarketId, Price, Seq } from '../../domain/units.ts'
import { balanceView } from '../accounts/view.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { type Specs, specOf } from '../markets/market-directory.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import { orderView } from '../orders/view.ts'
import type {
  Bookmark,
  CommandReport,
  Item,
  ItemResult,
  Placed,
  PlaceItem,
  StoredRequest,
} from './command.ts'
import type { EndedDuplicate } from './engine-command.ts'
import { itemRefusalError } from './engine-refusals.ts'
import type { ShardEpochs } from './shard-epochs.ts'
import type { StoredOrder } from './stored-orders.ts'

type Result = PlaceBatchAnswer['results'][number]
type NamedBatch = Pick<PlaceBatchBody, 'client_request_id' | 'mode'>
type BatchOutcome = Pick<PlaceBatchAnswer, 'balance' | 'read_after' | 'is_duplicate' | 'results'>

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

export const toBookmark = (
  { bookmark }: Pick<ShardEpochs, 'bookmark'>,
  { market_id, seq }: StoredBookmark,
): Bookmark => bookmark({ marketId: market_id as MarketId, seq: seq as Seq })

function batchAnswer({ client_request_id, mode }: NamedBatch, outcome: BatchOutcome): PlaceBatchAnswer {
  const { is_duplicate, results, balance, read_after } = outcome
  const refused = results.filter((result) => 'error' in result).length
  return {
    client_request_id,
    mode,
    balance,
    read_after,
    is_duplicate,
    accepted: results.length - refused,
    refused,
    results,
  }
}

/** An accepted order takes part at its own limit at the oracle price of its acceptance, so no price is needed. */
const AT_ACCEPTANCE = null

/** An order that has ended is in no book. */
const NOT_IN_BOOK = null

/** The answer to a batch that has just been executed. */
export const firstAnswer = (
  batch: NamedBatch,
  items: readonly Item[],
  { itemResults, balance, read_after }: CommandReport,
): PlaceBatchAnswer =>
  batchAnswer(batch, {
    is_duplicate: false,
    results: itemResults.map((result, at) => firstResult(items[at] as Item, result)),
    balance: balanceView(balance),
    read_after,
  })

function firstResult(item: Item, itemResult: ItemResult): Result {
  if (itemResult instanceof ApiError) return { error: itemError(itemResult) }
  const { order, isDuplicate, read_after, oracle } = itemResult as Placed
  const view = orderView((item as PlaceItem).spec, order, isDuplicate ? oracle : AT_ACCEPTANCE)
  return { order: view, is_duplicate: isDuplicate, read_after }
}

/** Markets, orders and bookmarks for the answer to a repeated request. */
export interface RequestContext {
  readonly specs: Specs
  /** The current rows of the request's orders. */
  readonly find: (hash: string) => StoredOrder
  readonly bookmark: ShardEpochs['bookmark']
}

/** The answer to a repetition of the batch. */
export const repeatedAnswer = (
  batch: NamedBatch,
  { results, balance, read_after }: StoredRequest,
  context: RequestContext,
): PlaceBatchAnswer =>
  batchAnswer(batch, {
    is_duplicate: true,
    results: results.map((result) => repeatedResult(result, context)),
    balance: balanceView({
      free: BigInt(balance.free),
      reserved: BigInt(balance.reserved),
      pendingWithdrawal: BigInt(balance.pending_withdrawal),
      positionMargin: BigInt(balance.position_margin),
    }),
    read_after: toBookmark(context, read_after),
  })

function repeatedResult(result: RequestResult, context: RequestContext): Result {
  const { specs, find } = context
  switch (result.kind) {
    case 'refused':
      return { error: storedItemError(result.refusal) }
    case 'answered': {
      const { order_hash, read_after } = result.answer as unknown as EndedDuplicate
      const row = find(order_hash)
      const order = orderView(specOf(specs, row), row, NOT_IN_BOOK)
      return { order, is_duplicate: true, read_after: toBookmark(context, read_after) }
    }
    case 'placed': {
      const { is_duplicate, oracle } = result
      const stored = find(result.order.hash)
      const row = is_duplicate ? asDecided(stored, result.order) : asAccepted(stored, result.order)
      const price = is_duplicate && oracle !== null ? (BigInt(oracle) as Price) : AT_ACCEPTANCE
      const order = orderView(specOf(specs, row), row, price)
      return { order, is_duplicate, read_after: toBookmark(context, result.read_after) }
    }
    case 'cancelled':
      throw new Error('a batch of placements cancels nothing')
  }
}

/** The order as it was when the request was decided, but with its present average price and fee. */
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

/** The order in its state at acceptance. */
const asAccepted = (stored: StoredOrder, { status, reserved }: StoredOrderState): StoredOrder => ({
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
