/**
 * What is kept of the answer to a batch of placements, so that the same batch is answered the same again: of an order that it placed
 * only what changes later, because the rest stays in the order's row for ever.
 */
import type { OrderStatus } from '../../domain/orders/order.ts'
import { balanceView } from '../accounts/view.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { type Specs, specOf } from '../markets/market-directory.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import type { Order } from '../orders/schema.ts'
import { type OrderRow, orderView } from '../orders/view.ts'
import type { Bookmark, CommandResult, Item, Placed, PlaceItem, Report } from './command.ts'

interface KeptPlaced {
  readonly order_hash: string
  readonly status: OrderStatus
  readonly reserved: string
  readonly read_after: Bookmark
}

type KeptResult =
  | KeptPlaced
  /** It had been placed before; what it was when this batch came cannot be told from its row. */
  | { readonly order: Order; readonly is_duplicate: true; readonly read_after: Bookmark }
  | { readonly error: ItemError }

export interface KeptBatch
  extends Pick<PlaceBatchAnswer, 'client_request_id' | 'mode' | 'balance' | 'read_after'> {
  readonly results: readonly KeptResult[]
}

const isPlaced = (result: KeptResult): result is KeptPlaced => 'order_hash' in result

/** Of the orders that it placed. */
export const placedHashes = ({ results }: KeptBatch): string[] =>
  results.filter(isPlaced).map(({ order_hash }) => order_hash)

export function keepBatch(
  { client_request_id, mode }: PlaceBatchBody,
  items: readonly Item[],
  { outcomes, balance, read_after }: Report,
): KeptBatch {
  const results = outcomes.map((outcome, at) => keepResult(items[at] as Item, outcome))
  return { client_request_id, mode, results, balance: balanceView(balance), read_after }
}

function keepResult(item: Item, outcome: CommandResult): KeptResult {
  if (outcome instanceof ApiError) return { error: itemError(outcome) }
  const { order, isDuplicate, read_after } = outcome as Placed
  if (isDuplicate)
    return { order: orderView((item as PlaceItem).spec, order), is_duplicate: true, read_after }
  const { hash, status, reserved } = order
  return { order_hash: hash, status, reserved: String(reserved), read_after }
}

function tell(
  { results, ...batch }: KeptBatch,
  is_duplicate: boolean,
  orderOf: (result: KeptPlaced, at: number) => Order,
): PlaceBatchAnswer {
  const refused = results.filter((result) => 'error' in result).length
  const told = results.map((result, at) =>
    isPlaced(result)
      ? { order: orderOf(result, at), is_duplicate: false, read_after: result.read_after }
      : result,
  )
  return { ...batch, is_duplicate, accepted: results.length - refused, refused, results: told }
}

/** The answer to a batch that has just been done. */
export const tellFirst = (batch: KeptBatch, items: readonly Item[], { outcomes }: Report): PlaceBatchAnswer =>
  tell(batch, false, (_, at) => orderView((items[at] as PlaceItem).spec, (outcomes[at] as Placed).order))

/** What never changes about an order. */
type Stored = Omit<
  OrderRow,
  | 'status'
  | 'reserved'
  | 'status_reason'
  | 'note'
  | 'filled'
  | 'filled_value'
  | 'settling'
  | 'fee'
  | 'triggered'
  | 'updated_at'
>

/** The same answer once more. `find` gives an order that the batch placed as it is now. */
export const tellAgain = (
  batch: KeptBatch,
  specs: Specs,
  find: (hash: string) => Stored | undefined,
): PlaceBatchAnswer =>
  tell(batch, true, (result) => {
    const stored = find(result.order_hash) as Stored
    return orderView(specOf(specs, stored), asAccepted(stored, result))
  })

/** The order as it was when it was accepted. */
const asAccepted = (stored: Stored, { status, reserved }: KeptPlaced): OrderRow => ({
  ...stored,
  status,
  reserved: BigInt(reserved),
  status_reason: null,
  note: null,
  filled: 0,
  filled_value: 0n,
  settling: 0,
  fee: 0n,
  triggered: null,
  updated_at: stored.accepted_at,
})
