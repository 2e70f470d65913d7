/** Cancels many orders by one command: a list of hashes, or all live orders of the account. */
import type { Db } from '../../db/client.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { specOf } from '../markets/market-directory.ts'
import type { CancelAllAnswer, CancelBatchAnswer, CancelBatchBody } from '../order-entry/batch-schema.ts'
import { type OrderRow, orderView } from '../orders/view.ts'
import { requestOf } from './client-requests.ts'
import type { Bookmark, Cancelled, CommandReport, Item, ItemResult } from './command.ts'
import { type CommandPorts, cancelView, NOT_IN_BOOK, singleItem } from './submit-single.ts'

/** The stored part of a result. The order is not stored: every answer shows its current state. */
type StoredResult =
  | {
      readonly order_hash: string
      readonly cancelled: boolean
      readonly is_duplicate: boolean
      readonly read_after: Bookmark
    }
  | { readonly order_hash: string; readonly error: ItemError }

interface StoredCancels {
  readonly client_request_id: string
  readonly results: readonly StoredResult[]
  readonly read_after: Bookmark
}

const toStoredResult = (order_hash: string, itemResult: ItemResult): StoredResult => {
  if (itemResult instanceof ApiError) return { order_hash, error: itemError(itemResult) }
  const { cancelled, isDuplicate, read_after } = itemResult as Cancelled
  return { order_hash, cancelled, is_duplicate: isDuplicate, read_after }
}

function batchView(
  { results, ...rest }: StoredCancels,
  is_duplicate: boolean,
  viewOf: (hash: string) => CancelAllAnswer['results'][number]['order'],
): CancelBatchAnswer {
  const views = results.map((result) =>
    'error' in result ? result : { ...result, order: viewOf(result.order_hash) },
  )
  return { ...rest, is_duplicate, results: views as CancelBatchAnswer['results'] }
}

export async function cancelBatch(
  { dispatcher, orderMarkets, markets }: CommandPorts,
  { userId }: Caller,
  body: CancelBatchBody,
  reason: string | null,
): Promise<CancelBatchAnswer> {
  const requested = body.orderHashes.map((hash) => hash.toLowerCase())
  const found = await orderMarkets.marketsOf(requested)
  const specs = await markets.byIds(found.values())
  const items = requested.map((hash): Item => ({ kind: 'cancel', hash, reason }))
  return dispatcher.submit<CancelBatchAnswer>({
    kind: 'cancel',
    userId,
    markets: [...specs.values()],
    items,
    isAtomic: false,
    request: requestOf('cancel/batch', body),
    answer({ itemResults, read_after }) {
      const results = requested.map((hash, at) => toStoredResult(hash, itemResults[at] as ItemResult))
      const stored = { client_request_id: body.client_request_id, results, read_after }
      const orders = new Map(requested.map((hash, at) => [hash, itemResults[at] as Cancelled]))
      const viewOf = (hash: string) => {
        const { order } = orders.get(hash) as Cancelled
        return orderView(specOf(specs, order), order, NOT_IN_BOOK)
      }
      return { result: batchView(stored, false, viewOf), stored: JSON.stringify(stored) }
    },
    replay(stored, find) {
      return batchView(JSON.parse(stored), true, (hash) => {
        const order = find(hash) as OrderRow
        return orderView(specOf(specs, order), order, NOT_IN_BOOK)
      })
    },
  })
}

/**
 * Markets in which the account has ever had orders. The command covers all of them, so that its bookmark includes orders that ended a
 * moment ago, even if there is nothing left to cancel.
 */
async function usedMarkets(db: Db, userId: number): Promise<number[]> {
  const rows = await db
    .selectFrom('markets as m')
    .select('m.market_id')
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('resting as r')
          .select('r.market_id')
          .whereRef('r.market_id', '=', 'm.market_id')
          .where('r.user_id', '=', userId),
      ),
    )
    .orderBy('m.market_id')
    .execute()
  return rows.map(({ market_id }) => market_id)
}

export async function cancelAll(
  { db, dispatcher, markets }: CommandPorts,
  { userId }: Caller,
  { marketId, reason }: { readonly marketId: number | null; readonly reason: string | null },
): Promise<CancelAllAnswer> {
  const ids = marketId === null ? await usedMarkets(db, userId) : [marketId]
  const specs = await markets.byIds(ids)
  // The answer is built after the commit, so that serializing thousands of orders does not extend the lock time.
  const { itemResults, read_after } = await dispatcher.submit<CommandReport>({
    kind: 'cancel',
    userId,
    markets: [...specs.values()],
    items: [{ kind: 'cancel_all', reason }],
    ...singleItem((report) => report),
  })
  const results = (itemResults as readonly Cancelled[]).map((itemResult) => ({
    order_hash: itemResult.order.hash,
    ...cancelView(specOf(specs, itemResult.order), itemResult),
  }))
  const cancelled_count = results.filter(({ is_duplicate }) => !is_duplicate).length
  return { cancelled_count, is_duplicate: cancelled_count === 0, results, read_after }
}
