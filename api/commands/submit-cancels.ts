/** Cancels many orders by one command: a list of hashes, or all live orders of the account. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { StoredResult as RequestResult } from '../../domain/journal/request-rows.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { type Specs, specOf } from '../markets/market-directory.ts'
import type { CancelAllAnswer, CancelBatchAnswer, CancelBatchBody } from '../order-entry/batch-schema.ts'
import { type OrderRow, orderView } from '../orders/view.ts'
import { requestOf } from './client-requests.ts'
import type { Cancelled, CommandReport, ItemResult, StoredRequest } from './command.ts'
import { requestIdentity } from './command-identity.ts'
import { afterExecution } from './earlier-attempts.ts'
import { findMarkets } from './find-orders.ts'
import { storedItemError, toBookmark } from './stored-answer.ts'
import type { StoredOrder } from './stored-orders.ts'
import { type CommandPorts, cancelView, NOT_IN_BOOK } from './submit-single.ts'

type Result = CancelBatchAnswer['results'][number]

export async function cancelBatch(
  ports: CommandPorts,
  { userId, address: maker }: Caller,
  body: CancelBatchBody,
  reason: string | null,
): Promise<CancelBatchAnswer> {
  const { attempts, db, dispatcher, logger } = ports
  const requested = body.orderHashes.map((hash) => hash.toLowerCase())
  // Waits for placements of these orders that are on their way.
  await findMarkets(ports, userId, requested)
  const items = requested.map((hash) => ({ kind: 'cancel', hash, reason }) as const)
  const request = requestOf('cancel/batch', body)
  const executed = await attempts.executing(requestIdentity(db, userId, request), () =>
    dispatcher.submit({ kind: 'cancel', userId, maker, items, isAtomic: false, request }),
  )
  return afterExecution(logger, {}, () =>
    'stored' in executed
      ? repeated(ports, userId, body, requested, executed.stored)
      : firstAnswer(ports, body, requested, executed.report),
  )
}

async function firstAnswer(
  { markets }: CommandPorts,
  { client_request_id }: CancelBatchBody,
  requested: readonly string[],
  { itemResults, read_after }: CommandReport,
): Promise<CancelBatchAnswer> {
  const orders = itemResults.flatMap((result) => (result instanceof ApiError ? [] : [result.order]))
  const specs = await markets.byIds(orders.map(({ market_id }) => market_id))
  const results = requested.map((hash, at) => resultOf(hash, itemResults[at] as ItemResult, specs))
  return { client_request_id, is_duplicate: false, results, read_after }
}

function resultOf(order_hash: string, itemResult: ItemResult, specs: Specs): Result {
  if (itemResult instanceof ApiError) return { order_hash, error: itemError(itemResult) }
  const { cancelled, isDuplicate, order, read_after } = itemResult as Cancelled
  return { order_hash, cancelled, is_duplicate: isDuplicate, read_after, order: viewOf(specs, order) }
}

const viewOf = (specs: Specs, order: OrderRow) => orderView(specOf(specs, order), order, NOT_IN_BOOK)

/** A later attempt may have cancelled the order: it did not exist when the batch was executed. */
const isEndingOf = (userId: number, order: StoredOrder | undefined): boolean =>
  order?.user_id === userId && (order.ended_at !== null || order.closing_reason !== null)

const inDoubt = ({ message, details }: ItemError): ItemError => ({
  message,
  details: { ...details, outcome: 'unknown' },
})

/** The answer to cancels that were executed before. Each order is shown in its present state. */
async function repeated(
  { epochs, findOrders, markets }: CommandPorts,
  userId: number,
  { client_request_id }: CancelBatchBody,
  requested: readonly string[],
  { results, read_after }: StoredRequest,
): Promise<CancelBatchAnswer> {
  const orders = await findOrders(requested)
  const specs = await markets.ofRows([...orders.values()])
  await epochs.refresh()
  const repeatedResult = (result: RequestResult, at: number): Result => {
    if (result.kind === 'refused') {
      const order_hash = requested[at] as string
      const error = storedItemError(result.refusal)
      return { order_hash, error: isEndingOf(userId, orders.get(order_hash)) ? inDoubt(error) : error }
    }
    if (result.kind !== 'cancelled') throw new Error('a batch of cancels places nothing')
    const { hash, cancelled, is_duplicate } = result
    const order = viewOf(specs, orders.get(hash) as StoredOrder)
    return {
      order_hash: hash,
      cancelled,
      is_duplicate,
      read_after: toBookmark(epochs, result.read_after),
      order,
    }
  }
  return {
    client_request_id,
    is_duplicate: true,
    results: results.map(repeatedResult),
    read_after: toBookmark(epochs, read_after),
  }
}

/** Markets of which the read model does not show every row yet; all, while the tables lack what the engine has stored. */
async function marketsBehind(db: Db): Promise<readonly number[]> {
  const { rows } = await sql<{ readonly market_id: number }>`
    select m.market_id
    from markets m
    join shards s on s.shard = 'm' || m.market_id
    left join lateral (select min(seq) as seq from read.places where shard = s.shard and epoch = s.epoch) p on true
    where coalesce(p.seq, 0) < s.head
      or (select written from engine_tables) < (select max(number) from engine_groups)
    order by m.market_id
  `.execute(db)
  return rows.map(({ market_id }) => market_id)
}

export async function cancelAll(
  { arrivals, db, dispatcher, logger, markets }: CommandPorts,
  { userId, address: maker }: Caller,
  { marketId, reason }: { readonly marketId: number | null; readonly reason: string | null },
): Promise<CancelAllAnswer> {
  await arrivals.untilSent(userId)
  if (marketId !== null) await markets.byId(marketId)
  const covers = marketId === null ? await marketsBehind(db) : []
  const { itemResults, read_after } = await dispatcher.cancelAll({ userId, maker, marketId, reason, covers })
  const cancelled = itemResults as readonly Cancelled[]
  return afterExecution(logger, {}, async () => {
    const specs = await markets.byIds(cancelled.map(({ order }) => order.market_id))
    const results = cancelled.map((itemResult) => ({
      order_hash: itemResult.order.hash,
      ...cancelView(specOf(specs, itemResult.order), itemResult),
    }))
    const cancelled_count = results.filter(({ is_duplicate }) => !is_duplicate).length
    return { cancelled_count, is_duplicate: cancelled_count === 0, results, read_after }
  })
}
