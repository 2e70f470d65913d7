/**
 * The stored answer to a batch of placements, from which a repeated batch gets the same answer. For an order that the batch placed it
 * stores only the fields that change later; all other fields are read from the order's row, which is never deleted.
 */
import type { OrderStatus } from '../../domain/orders/order.ts'
import { balanceView } from '../accounts/view.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { type Specs, specOf } from '../markets/market-directory.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import type { Order } from '../orders/schema.ts'
import { type OrderRow, orderView } from '../orders/view.ts'
import type { Bookmark, CommandReport, Item, ItemResult, Placed, PlaceItem } from './command.ts'

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
