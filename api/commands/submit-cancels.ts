/** Cancels many orders by one command: a list of hashes, or all live orders of the account. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { ShardHead } from '../../db/journal.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError, type ItemError, itemError } from '../errors.ts'
import { specOf } from '../markets/market-directory.ts'
import type { CancelAllAnswer, CancelBatchAnswer, CancelBatchBody } from '../order-entry/batch-schema.ts'
import { type OrderRow, orderView } from '../orders/view.ts'
import { requestOf } from './client-requests.ts'
import {
  type Bookmark,
  type CancelAllItem,
  type Cancelled,
  type CommandReport,
  type Item,
  type ItemResult,
  MarketsMissed,
} from './command.ts'
import type { NewCommand } from './command-dispatcher.ts'
import { requestIdentity } from './command-identity.ts'
import { afterExecution } from './earlier-attempts.ts'
import { findMarkets } from './find-orders.ts'
import type { ShardEpochs } from './shard-epochs.ts'
import { isStoredRequest, type StoredRequest, storedItemError, toBookmark } from './stored-answer.ts'
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

/** The stored cancels of a request that the engine has stored. */
function cancelsOfRequest(
  { results, read_after }: StoredRequest,
  { client_request_id }: CancelBatchBody,
  requested: readonly string[],
  epochs: ShardEpochs,
): StoredCancels {
  return {
    client_request_id,
    results: results.map((result, at): StoredResult => {
      if (result.kind === 'refused')
        return { order_hash: requested[at] as string, error: storedItemError(result.refusal) }
      if (result.kind !== 'cancelled') throw new Error('a batch of cancels places nothing')
      return {
        order_hash: result.hash,
        cancelled: result.cancelled,
        is_duplicate: result.is_duplicate,
        read_after: toBookmark(epochs, result.read_after),
      }
    }),
    read_after: toBookmark(epochs, read_after),
  }
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
  ports: CommandPorts,
  { userId }: Caller,
  body: CancelBatchBody,
  reason: string | null,
): Promise<CancelBatchAnswer> {
  const { db, dispatcher, attempts, markets } = ports
  const requested = body.orderHashes.map((hash) => hash.toLowerCase())
  const found = await findMarkets(ports, userId, requested)
  const specs = await markets.byIds(found.values())
  const items = requested.map((hash): Item => ({ kind: 'cancel', hash, reason }))
  const request = requestOf('cancel/batch', body)
  const command: NewCommand<CancelBatchAnswer> = {
    kind: 'cancel',
    userId,
    markets: [...specs.values()],
    covers: [],
    items,
    isAtomic: false,
    request,
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
      const parsed: StoredCancels | StoredRequest = JSON.parse(stored)
      const cancels = isStoredRequest(parsed)
        ? cancelsOfRequest(parsed, body, requested, ports.epochs)
        : parsed
      return batchView(cancels, true, (hash) => {
        const order = find(hash) as OrderRow
        return orderView(specOf(specs, order), order, NOT_IN_BOOK)
      })
    },
  }
  return attempts.executing(requestIdentity(db, userId, request), () => dispatcher.submit(command))
}

/** Which journals a cancel of all orders concerns. */
interface CancelScope {
  /** Markets in which the account has live orders. They are locked. */
  readonly marketIds: readonly number[]
  /**
   * Journals of other markets in which the account had orders and of which the read model does not show every row yet: its bookmark includes
   * orders that ended a moment ago.
   */
  readonly covers: readonly ShardHead[]
}

async function readScope(db: Db, userId: number): Promise<CancelScope> {
  const { rows } = await sql<ShardHead & { market_id: number; is_live: boolean }>`
    select r.market_id, r.orders > 0 as is_live, s.shard, s.epoch, s.head
    from resting r
    join shards s on s.shard = 'm' || r.market_id
    left join lateral (select min(seq) as seq from read.places where shard = s.shard and epoch = s.epoch) p on true
    where r.user_id = ${userId} and (r.orders > 0 or coalesce(p.seq, 0) < s.head)
    order by r.market_id
  `.execute(db)
  return {
    marketIds: rows.filter(({ is_live }) => is_live).map(({ market_id }) => market_id),
    covers: rows.filter(({ is_live }) => !is_live).map(({ shard, epoch, head }) => ({ shard, epoch, head })),
  }
}

/** Each attempt misses only markets in which the account has placed its first live order since the one before. */
const ATTEMPTS = 5

async function submitCancelAll(
  { dispatcher, markets }: CommandPorts,
  userId: number,
  item: CancelAllItem,
  { marketIds, covers }: CancelScope,
) {
  const specs = await markets.byIds(marketIds)
  // The answer is built after the commit, so that serializing thousands of orders does not extend the lock time.
  return dispatcher.submit<CommandReport>({
    kind: 'cancel',
    userId,
    markets: [...specs.values()],
    items: [item],
    ...singleItem((report) => report),
    covers,
  })
}

const submitCancelMarket = (ports: CommandPorts, userId: number, reason: string | null, marketId: number) =>
  submitCancelAll(
    ports,
    userId,
    { kind: 'cancel_all', reason, isEverywhere: false },
    { marketIds: [marketId], covers: [] },
  )

/** Cancels in every market, and again if the account has placed orders in further markets until it was locked. */
async function submitCancelEverywhere(ports: CommandPorts, userId: number, reason: string | null) {
  const item = { kind: 'cancel_all', reason, isEverywhere: true } as const
  for (let attempt = 1; ; attempt++) {
    try {
      return await submitCancelAll(ports, userId, item, await readScope(ports.db, userId))
    } catch (error) {
      if (!(error instanceof MarketsMissed) || attempt === ATTEMPTS) throw error
    }
  }
}

/**
 * Cancels in one market after another, so that a transaction ends the orders of one market only, unless the dispatcher has steps. The last
 * transaction locks the account and what is left: it ends orders that were placed meanwhile, and its bookmark covers all markets. No transaction begins later than
 * `commandTimeoutMs`: a stop of the process waits for the answer.
 */
async function cancelEverywhere(ports: CommandPorts, userId: number, reason: string | null) {
  const deadline = ports.clock.now() + ports.commandTimeoutMs
  const placed = ports.arrivals.untilAnswered(userId, ports.commandTimeoutMs)
  const { marketIds } = await readScope(ports.db, userId)
  const cancelled = new Map<string, Cancelled>()
  const note = ({ itemResults }: { readonly itemResults: readonly ItemResult[] }): void => {
    for (const result of itemResults as readonly Cancelled[])
      if (!cancelled.has(result.order.hash)) cancelled.set(result.order.hash, result)
  }
  try {
    for (const marketId of marketIds.length > 1 && !ports.dispatcher.hasSteps ? marketIds : []) {
      note(await submitCancelMarket(ports, userId, reason, marketId))
      if (ports.clock.now() > deadline) throw new ApiError('OVERLOADED', {}, '1')
    }
    // Placements sent before this command may still be in the queues of their markets.
    await placed
    const last = await submitCancelEverywhere(ports, userId, reason)
    note(last)
    return { ...last, itemResults: [...cancelled.values()] }
  } catch (error) {
    // A market in which nothing was left to cancel is as good as one that the command did not reach.
    if (cancelled.size === 0) throw error
    ports.logger.warn(
      { err: error, cancelled: cancelled.size },
      'a cancel of all orders ended before its last market',
    )
    throw new ApiError('OUTCOME_UNKNOWN', {}, '1')
  }
}

export async function cancelAll(
  ports: CommandPorts,
  { userId }: Caller,
  { marketId, reason }: { readonly marketId: number | null; readonly reason: string | null },
): Promise<CancelAllAnswer> {
  await ports.arrivals.untilQueued(userId)
  const { itemResults, read_after } =
    marketId === null
      ? await cancelEverywhere(ports, userId, reason)
      : await submitCancelMarket(ports, userId, reason, marketId)
  const cancelled = itemResults as readonly Cancelled[]
  return afterExecution(ports.logger, {}, async () => {
    const specs = await ports.markets.byIds(cancelled.map(({ order }) => order.market_id))
    const results = cancelled.map((itemResult) => ({
      order_hash: itemResult.order.hash,
      ...cancelView(specOf(specs, itemResult.order), itemResult),
    }))
    const cancelled_count = results.filter(({ is_duplicate }) => !is_duplicate).length
    return { cancelled_count, is_duplicate: cancelled_count === 0, results, read_after }
  })
}
