/** Replaces one order, or up to 50 by one command. A replacement is a placement with a target: its identity is the hash of the new order. */
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { specOf } from '../markets/market-directory.ts'
import {
  type ReplaceAnswer,
  type ReplaceBatchAnswer,
  type ReplaceBatchBody,
  ReplaceBody,
} from '../order-entry/replace-schema.ts'
import { orderView } from '../orders/view.ts'
import type { Arrival } from './arriving-placements.ts'
import { requestOf } from './client-requests.ts'
import type { CommandReport, Item, Placed, ReplaceItem, StoredRequest } from './command.ts'
import { placementIdentity, saltedOrder } from './command-identity.ts'
import { afterExecution } from './earlier-attempts.ts'
import { itemParser } from './parse-items.ts'
import { parseFlags, parseOrder } from './parse-order.ts'
import { withLaterPlacements } from './repeated-refusals.ts'
import { firstAnswer, hashesOfRequest, repeatedAnswer } from './stored-answer.ts'
import type { StoredOrder } from './stored-orders.ts'
import { executeBatch, type WrittenAnswer, written } from './submit-placements.ts'
import { type CommandPorts, executeOne, NOT_IN_BOOK, placementAnswer, quotesFor } from './submit-single.ts'

/** The order that a replacement names. */
function targetOf({ cancel }: ReplaceBody): ReplaceItem['target'] {
  const { order_hash: hash, client_order_id: label } = cancel
  if (hash !== undefined && label === undefined) return { hash: hash.toLowerCase() }
  if (label !== undefined && hash === undefined) return { label }
  throw new ApiError('REPLACE_TARGET_REQUIRED', {
    field: 'cancel',
    expected: 'either order_hash or client_order_id',
    received: hash === undefined ? 'neither' : 'both',
  })
}

/** Waits for placements before it that may be those of the orders it names: they are verified, and not sent yet. */
async function afterTargets(
  { orderMarkets }: CommandPorts,
  targets: readonly ReplaceItem['target'][],
  arrival: Arrival,
): Promise<void> {
  const areSent = targets.every((target) => 'hash' in target && orderMarkets.isRecent(target.hash))
  if (!areSent) await arrival.afterEarlier()
}

export async function replaceOrder(
  ports: CommandPorts,
  caller: Caller,
  body: ReplaceBody,
  arrival: Arrival,
): Promise<ReplaceAnswer> {
  const { userId, address } = caller
  const { attempts, findBySalt, markets, verifier, logger, db } = ports
  const salted = saltedOrder(address, body.order)
  const { item, spec } = await attempts.checking(placementIdentity(findBySalt, salted, null), async () => {
    const target = targetOf(body)
    const spec = await markets.byId(salted.marketId)
    const parsed = parseOrder(spec, address, body.order)
    const flags = parseFlags(body.order, parsed)
    const order = await verifier.verify(spec, parsed, body.order.signature)
    const clientOrderId = body.order.client_order_id ?? null
    const ifFilled = body.if_filled ?? 'refuse'
    return { spec, item: { kind: 'replace', spec, order, clientOrderId, flags, target, ifFilled } as const }
  })
  await afterTargets(ports, [item.target], arrival)
  const quotes = quotesFor(ports, spec, userId, item.order)
  ports.orderMarkets.record(item.order.hash, spec.marketId)
  const executed = attempts.executing(placementIdentity(findBySalt, salted, item.order.hash), () =>
    executeOne<Placed>(ports.dispatcher, caller, item),
  )
  arrival.sent()
  const { result: placed, balance } = await executed
  const { order_id, hash: order_hash } = placed.order
  return afterExecution(logger, { order_id, order_hash }, async () => ({
    ...(await placementAnswer(db, spec, { placed, balance, quotes: await quotes() })),
    replaced: orderView(spec, await replacedBy(ports, placed), NOT_IN_BOOK),
  }))
}

async function replacedBy(
  { findOrdersById }: CommandPorts,
  { order, replaced }: Placed,
): Promise<StoredOrder> {
  const id = order.replaces as string
  return replaced ?? ((await findOrdersById([id])).get(id) as StoredOrder)
}

// ---------------------------------------------------------------------- batches

const itemsOf = itemParser<ReplaceBody>({
  schema: ReplaceBody,
  url: '/v0/orders/replace/batch',
  expected: 'a replacement: cancel and order',
  orderOf: ({ order }) => order,
  itemOf: (body, order) => ({
    kind: 'replace',
    ...order,
    target: targetOf(body),
    ifFilled: body.if_filled ?? 'refuse',
  }),
})

export async function replaceBatch(
  ports: CommandPorts,
  caller: Caller,
  body: ReplaceBatchBody,
  arrival: Arrival,
): Promise<WrittenAnswer> {
  const items = await itemsOf(ports, caller, body.orders)
  const batch = { request: requestOf('replace/batch', body), items, isAtomic: body.mode === 'atomic' }
  const targets = items.flatMap((item) => (item.kind === 'replace' ? [item.target] : []))
  const mayBeSent = () => afterTargets(ports, targets, arrival)
  const executed = await executeBatch(ports, caller, batch, { arrival, mayBeSent })
  return afterExecution(ports.logger, {}, () =>
    answered(ports, caller, body, 'stored' in executed ? executed : { report: executed.report, items }),
  )
}

type BatchResult =
  | { readonly stored: StoredRequest }
  | { readonly report: CommandReport; readonly items: readonly Item[] }

async function answered(
  ports: CommandPorts,
  caller: Caller,
  body: ReplaceBatchBody,
  result: BatchResult,
): Promise<WrittenAnswer> {
  const { answer, replaced, ids } =
    'stored' in result ? await repeated(ports, caller, body, result.stored) : first(body, result)
  const missing = ids.filter((id, at) => id !== null && replaced[at] === undefined) as string[]
  const found = await ports.findOrdersById(missing)
  const orders = ids.map((id, at) => replaced[at] ?? (id === null ? undefined : found.get(id)))
  const specs = await ports.markets.ofRows(orders.filter((order) => order !== undefined))
  const results = answer.results.map((one, at): ReplaceBatchAnswer['results'][number] => {
    if ('error' in one) return one
    const row = orders[at] as StoredOrder
    const { order, is_duplicate, read_after } = one
    return { order, replaced: orderView(specOf(specs, row), row, NOT_IN_BOOK), is_duplicate, read_after }
  })
  const whole: ReplaceBatchAnswer = { ...answer, results }
  return written(whole)
}

/** The answer of a batch of placements, with the replaced orders that are known and the ids of all. */
interface WithReplaced {
  readonly answer: ReturnType<typeof firstAnswer>
  readonly replaced: readonly (StoredOrder | undefined)[]
  readonly ids: readonly (string | null)[]
}

function first(
  body: ReplaceBatchBody,
  { report, items }: Extract<BatchResult, { readonly report: unknown }>,
): WithReplaced {
  const placed = report.itemResults.map((result) => (result instanceof ApiError ? null : (result as Placed)))
  return {
    answer: firstAnswer(body, items, report),
    replaced: placed.map((one) => one?.replaced),
    ids: placed.map((one) => one?.order.replaces ?? null),
  }
}

/** Orders of a repetition are read by the stored hashes: an order that would be rejected now is in no item. */
async function repeated(
  ports: CommandPorts,
  { address }: Caller,
  body: ReplaceBatchBody,
  stored: StoredRequest,
): Promise<WithReplaced> {
  const { findOrders, markets, epochs } = ports
  const orders = await findOrders(hashesOfRequest(stored))
  const specs = await markets.ofRows([...orders.values()])
  const find = (hash: string) => orders.get(hash) as StoredOrder
  await epochs.refresh()
  const then = repeatedAnswer(body, stored, { specs, find, bookmark: epochs.bookmark })
  const placements = body.orders.map(({ order }) => order)
  const answer = { ...then, results: await withLaterPlacements(ports, address, placements, then.results) }
  const ids = answer.results.map((one) => ('order' in one ? one.order.replaces : null))
  return { answer, replaced: ids.map(() => undefined), ids }
}
