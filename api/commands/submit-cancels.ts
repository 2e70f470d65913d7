/** Cancelling many orders by one command. */
import type { Db } from '../../db/client.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { specOf } from '../markets/market-directory.ts'
import type { CancelAllAnswer, CancelBatchAnswer, CancelBatchBody } from '../order-entry/batch-schema.ts'
import { type OrderRow, orderView } from '../orders/view.ts'
import { requestOf } from './client-requests.ts'
import type { Bookmark, Cancelled, CommandResult, Item, Report } from './command.ts'
import { cancelView, type IntakePorts, single } from './submit-single.ts'

/** What is kept of a result: all but the order, which is told as it is whenever it is told. */
type KeptResult =
  | {
      readonly order_hash: string
      readonly cancelled: boolean
      readonly is_duplicate: boolean
      readonly read_after: Bookmark
    }
  | { readonly order_hash: string; readonly error: ItemError }

interface KeptAnswer {
  readonly client_request_id: string
  readonly results: readonly KeptResult[]
  readonly read_after: Bookmark
}

const keptResult = (order_hash: string, outcome: CommandResult): KeptResult => {
  if (outcome instanceof ApiError) return { order_hash, error: itemError(outcome) }
  const { cancelled, isDuplicate, read_after } = outcome as Cancelled
  return { order_hash, cancelled, is_duplicate: isDuplicate, read_after }
}

function batchView(
  { results, ...rest }: KeptAnswer,
  is_duplicate: boolean,
  viewOf: (hash: string) => CancelAllAnswer['results'][number]['order'],
): CancelBatchAnswer {
  const told = results.map((result) =>
    'error' in result ? result : { ...result, order: viewOf(result.order_hash) },
  )
  return { ...rest, is_duplicate, results: told as CancelBatchAnswer['results'] }
}

export async function cancelBatch(
  { lanes, hashes, markets }: IntakePorts,
  { userId }: Caller,
  body: CancelBatchBody,
  reason: string | null,
): Promise<CancelBatchAnswer> {
  const asked = body.orderHashes.map((hash) => hash.toLowerCase())
  const found = await hashes.marketsOf(asked)
  const specs = await markets.byIds(found.values())
  const items = asked.map((hash): Item => ({ kind: 'cancel', hash, reason }))
  return lanes.submit<CancelBatchAnswer>({
    kind: 'cancel',
    userId,
    markets: [...specs.values()],
    items,
    isAtomic: false,
    request: requestOf('cancel/batch', body),
    answer({ outcomes, read_after }) {
      const results = asked.map((hash, at) => keptResult(hash, outcomes[at] as CommandResult))
      const kept = { client_request_id: body.client_request_id, results, read_after }
      const orders = new Map(asked.map((hash, at) => [hash, outcomes[at] as Cancelled]))
      const viewOf = (hash: string) => {
        const { order } = orders.get(hash) as Cancelled
        return orderView(specOf(specs, order), order)
      }
      return { result: batchView(kept, false, viewOf), kept: JSON.stringify(kept) }
    },
    replay(kept, find) {
      return batchView(JSON.parse(kept), true, (hash) => {
        const order = find(hash) as OrderRow
        return orderView(specOf(specs, order), order)
      })
    },
  })
}

/**
 * Markets in which the account has ever had orders: the bookmark of a cancel that found nothing left must still stand for what ended
 * there a moment ago.
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
  { db, lanes, markets }: IntakePorts,
  { userId }: Caller,
  { marketId, reason }: { readonly marketId: number | null; readonly reason: string | null },
): Promise<CancelAllAnswer> {
  const ids = marketId === null ? await usedMarkets(db, userId) : [marketId]
  const specs = await markets.byIds(ids)
  // Told after the commit: it can be thousands of orders, and nobody shall wait for that behind the locks.
  const { outcomes, read_after } = await lanes.submit<Report>({
    kind: 'cancel',
    userId,
    markets: [...specs.values()],
    items: [{ kind: 'cancel_all', reason }],
    ...single((report) => report),
  })
  const results = (outcomes as readonly Cancelled[]).map((outcome) => ({
    order_hash: outcome.order.hash,
    ...cancelView(specOf(specs, outcome.order), outcome),
  }))
  const cancelled_count = results.filter(({ is_duplicate }) => !is_duplicate).length
  return { cancelled_count, is_duplicate: cancelled_count === 0, results, read_after }
}
