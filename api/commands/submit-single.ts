/** Places or cancels one order: runs the checks that need no state of the exchange, submits the command, builds the answer. */

import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { cancelKey, labelKey, orderKey } from '../../domain/exchange/decide/orders/command-keys.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { isMarketType, type Order } from '../../domain/orders/order.ts'
import type { Clock } from '../../service/clock.ts'
import { type BalanceParts, balanceView } from '../accounts/view.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { fillsOfOrder } from '../fills/query.ts'
import type { Fill } from '../fills/schema.ts'
import { fillView } from '../fills/view.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { expectedProtectionPrice, readQuotes } from '../order-book/expected-protection.ts'
import type { CancelAnswer, PlaceOrderAnswer, PlaceOrderBody } from '../order-entry/schema.ts'
import { labelledOrder } from '../orders/query.ts'
import { orderView } from '../orders/view.ts'
import { maybeAmount } from '../wire/amounts.ts'
import type { Arrival, ArrivingPlacements } from './arriving-placements.ts'
import type { Cancelled, Command, CommandReport, Item, Placed } from './command.ts'
import { cancelIdentity, type FindBySalt, placementIdentity, saltedOrder } from './command-identity.ts'
import type { CommandDispatcher } from './dispatcher.ts'
import { afterExecution, type CommandLogger, type EarlierAttempts } from './earlier-attempts.ts'
import { findMarkets, PAUSES_MS } from './find-orders.ts'
import type { OrderMarketIndex } from './order-market-index.ts'
import { parseFlags, parseOrder } from './parse-order.ts'
import { requireSettled, type Settled } from './settled-commands.ts'
import type { ShardEpochs } from './shard-epochs.ts'
import type { FindOrders } from './stored-orders.ts'
import type { TableProgress } from './table-progress.ts'
import type { Verifier } from './verify-signature.ts'

export interface CommandPorts {
  readonly db: Db
  readonly dispatcher: CommandDispatcher
  readonly attempts: EarlierAttempts
  readonly arrivals: ArrivingPlacements
  readonly tables: TableProgress
  readonly settled: Settled
  readonly findBySalt: FindBySalt
  readonly findOrders: FindOrders
  readonly findOrdersById: FindOrders
  readonly epochs: ShardEpochs
  readonly orderMarkets: OrderMarketIndex
  readonly markets: MarketDirectory
  readonly verifier: Verifier
  readonly clock: Clock
  readonly logger: CommandLogger
  readonly commandTimeoutMs: number
}

/** A cancelled order is not in the book, so its effective price needs no oracle price. */
export const NOT_IN_BOOK = null

const MAX_DUPLICATE_FILLS = 1000

/** A new order has no fills; only a duplicate of an earlier order can. */
async function fillsOf(db: Db, spec: MarketSpec, { isDuplicate, order }: Placed): Promise<Fill[]> {
  if (!isDuplicate || order.filled + order.settling === 0) return []
  const rows = await fillsOfOrder(db, order.order_id, { limit: MAX_DUPLICATE_FILLS, cursor: null })
  return rows.map((row) => fillView(spec, row))
}

/** Reads share connections, so a placement that is committed waits for them no longer than this. */
const QUOTES_WAIT_MS = 100

/**
 * Best quotes for the effective price. Null for a limit order, or if the book cannot be read in time; the placement is
 * answered anyway.
 */
export function quotesFor(
  { db, clock, logger }: CommandPorts,
  spec: MarketSpec,
  userId: number,
  { type, side }: Order,
) {
  if (!isMarketType(type)) return async () => null
  const reading = readQuotes(db, spec, { userId, side }, clock.now()).catch((err: unknown) => {
    logger.warn(
      { err },
      'failed to read the book; a placement is answered without its expected protection price',
    )
    return null
  })
  return () => Promise.race([reading, setTimeout(QUOTES_WAIT_MS, null, { ref: false })])
}

/** A command with one item. It needs no `client_request_id`, because the order identifies a repetition. */
export const singleCommand = (
  { userId, address }: Caller,
  item: Exclude<Item, { readonly kind: 'refused' }>,
): Command => ({
  kind: item.kind === 'cancel' ? 'cancel' : 'place',
  userId,
  maker: address,
  items: [item],
  isAtomic: false,
  request: null,
})

/** The result of a command's only item; throws its ApiError. */
export function onlyResult<Result extends Placed | Cancelled>({ itemResults }: CommandReport): Result {
  const [itemResult] = itemResults
  if (itemResult instanceof ApiError) throw itemResult
  return itemResult as Result
}

export async function executeOne<Result extends Placed | Cancelled>(
  dispatcher: CommandDispatcher,
  caller: Caller,
  item: Parameters<typeof singleCommand>[1],
) {
  const executed = await dispatcher.submit(singleCommand(caller, item))
  if ('stored' in executed) throw new Error('a command without a client_request_id has no stored answer')
  const { report } = executed
  return { result: onlyResult<Result>(report), balance: report.balance }
}

/** An executed placement. `answer` reads the additional fields of the response, such as fills and quotes. */
export interface ExecutedPlacement {
  readonly spec: MarketSpec
  readonly placed: Placed
  readonly answer: () => Promise<PlaceOrderAnswer>
}

export async function placeOrder(
  ports: CommandPorts,
  caller: Caller,
  body: PlaceOrderBody,
  arrival: Arrival,
): Promise<PlaceOrderAnswer> {
  const { placed, answer } = await executePlacement(ports, caller, body, { arrival })
  const { order_id, hash: order_hash } = placed.order
  return afterExecution(ports.logger, { order_id, order_hash }, answer)
}

/** Executes a placement without its response. `check` validates the body before the order is parsed. */
export async function executePlacement(
  ports: CommandPorts,
  caller: Caller,
  body: PlaceOrderBody,
  { arrival, check = () => {} }: { readonly arrival: Arrival; readonly check?: () => void },
): Promise<ExecutedPlacement> {
  const { userId, address } = caller
  const { db, dispatcher, attempts, findBySalt, orderMarkets, markets, verifier } = ports
  const salted = saltedOrder(address, body)
  const { spec, order, flags } = await attempts.checking(
    placementIdentity(findBySalt, salted, null),
    async () => {
      check()
      const spec = await markets.byId(salted.marketId)
      const parsed = parseOrder(spec, address, body)
      const flags = parseFlags(body, parsed)
      return { spec, flags, order: await verifier.verify(spec, parsed, body.signature) }
    },
  )
  const clientOrderId = body.client_order_id ?? null
  // Later cancels find the order's market and are sent after this command.
  orderMarkets.record(order.hash, spec.marketId)
  const quotes = quotesFor(ports, spec, userId, order)
  const executed = attempts.executing(placementIdentity(findBySalt, salted, order.hash), () =>
    executeOne<Placed>(dispatcher, caller, { kind: 'place', spec, order, clientOrderId, flags }),
  )
  arrival.sent()
  const { result: placed, balance } = await executed
  return {
    spec,
    placed,
    answer: async () => placementAnswer(db, spec, { placed, balance, quotes: await quotes() }),
  }
}

export interface PlacementResult {
  readonly placed: Placed
  readonly balance: BalanceParts
  readonly quotes: Awaited<ReturnType<ReturnType<typeof quotesFor>>>
}

export const placementAnswer = async (
  db: Db,
  spec: MarketSpec,
  { placed, balance, quotes }: PlacementResult,
): Promise<PlaceOrderAnswer> => ({
  order: orderView(spec, placed.order, placed.oracle),
  fills: await fillsOf(db, spec, placed),
  is_duplicate: placed.isDuplicate,
  ...maybeAmount(
    'expected_protection_price',
    expectedProtectionPrice(spec, placed.order, placed.oracle, quotes),
  ),
  balance: balanceView(balance),
  read_after: placed.read_after,
})

/**
 * Waits for the engine, because another API process may have received the order. A later placement is not executed,
 * because the answer states that the order does not exist.
 */
async function marketOfSettled({ settled, orderMarkets }: CommandPorts, userId: number, hash: string) {
  await requireSettled(settled, [orderKey(userId, hash), cancelKey(userId, hash)])
  return (await orderMarkets.marketsOf([hash])).get(hash)
}

export async function cancelOrder(
  ports: CommandPorts,
  caller: Caller,
  { hash, reason }: { readonly hash: string; readonly reason: string | null },
): Promise<CancelAnswer> {
  const { userId } = caller
  const { db, dispatcher, attempts, markets } = ports
  const marketId =
    (await findMarkets(ports, userId, [hash])).get(hash) ?? (await marketOfSettled(ports, userId, hash))
  if (marketId === undefined) throw new ApiError('ORDER_NOT_FOUND', { field: 'order_hash', received: hash })
  const spec = await markets.byId(marketId)
  const { result } = await attempts.executing(cancelIdentity(db, userId, hash), () =>
    executeOne<Cancelled>(dispatcher, caller, { kind: 'cancel', hash, reason }),
  )
  return cancelView(spec, result)
}

interface LabelledRow {
  readonly hash: string
  readonly is_live: boolean
}

async function findLabelled(db: Db, userId: number, clientOrderId: string): Promise<LabelledRow | undefined> {
  const { rows } = await sql<LabelledRow>`
    select hash, ended_at is null as is_live from orders
    where hash = (${labelledOrder('hash', userId, clientOrderId)})
  `.execute(db)
  return rows[0]
}

/** Cancels the live order with the label; without one, answers with the last order that had it. */
export async function cancelLabelled(
  ports: CommandPorts,
  caller: Caller,
  { clientOrderId, reason }: { readonly clientOrderId: string; readonly reason: string | null },
): Promise<CancelAnswer> {
  const { arrivals, commandTimeoutMs, db, settled } = ports
  const { userId } = caller
  // The label is stored with the order, whose row follows the answer.
  await arrivals.untilAnswered(userId, commandTimeoutMs)
  await requireSettled(settled)
  let order = await findLabelled(db, userId, clientOrderId)
  for (const pause of PAUSES_MS) {
    if (order !== undefined) break
    await setTimeout(pause)
    order = await findLabelled(db, userId, clientOrderId)
  }
  if (!order?.is_live) {
    // Another api may hold a placement with the label. It must not go live after this answer.
    await requireSettled(settled, [labelKey(userId, clientOrderId)])
    order = await findLabelled(db, userId, clientOrderId)
  }
  if (order !== undefined) return cancelOrder(ports, caller, { hash: order.hash, reason })
  throw new ApiError('ORDER_NOT_FOUND', { field: 'client_order_id', received: clientOrderId })
}

export const cancelView = (
  spec: MarketSpec,
  { cancelled, isDuplicate, order, read_after }: Cancelled,
): CancelAnswer => ({
  cancelled,
  is_duplicate: isDuplicate,
  order: orderView(spec, order, NOT_IN_BOOK),
  read_after,
})
