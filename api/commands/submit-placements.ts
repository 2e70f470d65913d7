/** Places up to 50 orders by one command: validates each order, submits the command, builds or replays its answer. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { type Problem, validationError } from '../http/problems.ts'
import { compileValidator } from '../http/validation.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import { PlaceOrderBody } from '../order-entry/schema.ts'
import type { Signed } from '../ports.ts'
import type { Arrival } from './arriving-placements.ts'
import { requestOf, storedAnswer } from './client-requests.ts'
import type { Item, PlaceItem } from './command.ts'
import { placementIdentity, requestIdentity, saltedOrder } from './command-identity.ts'
import { rejectWhole } from './decide.ts'
import { afterExecution } from './earlier-attempts.ts'
import type { StoredOrder } from './group-state.ts'
import { parseOrder } from './parse-order.ts'
import {
  batchOfRequest,
  firstAnswer,
  hashesOfRequest,
  isStoredRequest,
  placedHashes,
  replayedAnswer,
  type StoredBatch,
  type StoredRequest,
  toStoredBatch,
} from './stored-answer.ts'
import type { CommandPorts } from './submit-single.ts'

/** The serialized answer. */
export type JsonText = string

const validate = compileValidator({
  schema: PlaceOrderBody,
  method: 'POST',
  url: '/v0/orders/place/batch',
  httpPart: 'body',
}) as (value: unknown) => { readonly error?: readonly Problem[] } | boolean

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Validates one order of the batch up to its signature. */
async function parseItem(
  { attempts, findBySalt, markets }: Pick<CommandPorts, 'attempts' | 'findBySalt' | 'markets'>,
  { address }: Caller,
  body: PlaceOrderBody,
): Promise<Signed | ApiError> {
  try {
    if (!isObject(body))
      throw new ApiError('INVALID_FIELD', { expected: 'a signed order', received: body }).beforeReading()
    const checked = validate(body)
    const problems = typeof checked === 'object' ? checked.error : undefined
    if (problems) throw validationError(problems, body, PlaceOrderBody).beforeReading()
    const salted = saltedOrder(address, body)
    return await attempts.checking(placementIdentity(findBySalt, salted, null), async () => {
      const spec = await markets.byId(salted.marketId)
      return { spec, order: parseOrder(spec, address, body), signature: body.signature }
    })
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** One item per order, in the order of the request, after all checks that need no lock. */
async function itemsOf(
  ports: CommandPorts,
  caller: Caller,
  bodies: readonly PlaceOrderBody[],
): Promise<Item[]> {
  const parsed = await Promise.all(bodies.map((body) => parseItem(ports, caller, body)))
  const verified = await ports.verifier.verifyAll(
    parsed.filter((item): item is Signed => !(item instanceof ApiError)),
  )
  let next = 0
  const items = parsed.map(async (item, at): Promise<Item> => {
    if (item instanceof ApiError) return { kind: 'refused', error: item }
    const order = verified[next++]
    if (order instanceof ApiError) return { kind: 'refused', error: await unlessPlaced(ports, item, order) }
    const clientOrderId = bodies[at]?.client_order_id ?? null
    return { kind: 'place', spec: item.spec, order, clientOrderId } as PlaceItem
  })
  return Promise.all(items)
}

/** The error of an order whose signature is refused now: it may have been placed before. */
async function unlessPlaced(
  { attempts, findBySalt }: CommandPorts,
  { order: { marketId, maker, salt } }: Signed,
  error: ApiError,
): Promise<ApiError> {
  const identity = placementIdentity(findBySalt, { marketId, maker, salt: String(salt) }, null)
  return attempts.checking(identity, () => Promise.reject(error)).catch((judged: ApiError) => judged)
}

const errorsOf = (items: readonly Item[]): unknown[] =>
  items.map((item) => (item.kind === 'refused' ? item.error : item))

export const marketsOf = (items: readonly Item[]): MarketSpec[] => {
  const specs = new Map(
    items.flatMap((item) => (item.kind === 'place' ? [[item.spec.marketId, item.spec]] : [])),
  )
  return [...specs.values()].sort((a, b) => a.marketId - b.marketId)
}

export async function placeBatch(
  ports: CommandPorts,
  caller: Caller,
  body: PlaceBatchBody,
  arrival: Arrival,
): Promise<JsonText> {
  const { userId } = caller
  const { attempts, logger } = ports
  const request = requestOf('place/batch', body)
  const identity = requestIdentity(ports.db, userId, request)
  const items = await itemsOf(ports, caller, body.orders)
  if (items.some(({ kind }) => kind === 'refused')) {
    // The batch may have been executed before, when the order was still valid: replay its answer instead of rejecting it now.
    const stored = await storedAnswer(ports.db, userId, request)
    if (stored !== null)
      return afterExecution(logger, {}, async () =>
        JSON.stringify(await replayStored(ports, body, JSON.parse(stored))),
      )
  }
  const isAtomic = body.mode === 'atomic'
  if (isAtomic) await attempts.checking(identity, async () => rejectWhole(errorsOf(items)))
  // The answer is built after the commit, so that serializing fifty orders does not extend the lock time.
  const markets = marketsOf(items)
  const executed = attempts.executing(identity, () =>
    ports.dispatcher.submit<() => PlaceBatchAnswer | Promise<PlaceBatchAnswer>>({
      kind: 'place',
      userId,
      markets,
      covers: [],
      items,
      isAtomic,
      request,
      answer(report) {
        const batch = toStoredBatch(body, items, report)
        return { result: () => firstAnswer(batch, items, report), stored: JSON.stringify(batch) }
      },
      // Orders are read by the hashes of the stored answer: an order that would be rejected now is in no item.
      replay: (text) => () => replayStored(ports, body, JSON.parse(text)),
    }),
  )
  if (markets.length === 1) noteQueued(ports, items, arrival)
  const buildAnswer = await executed
  return afterExecution(logger, {}, async () => JSON.stringify(await buildAnswer()))
}

/**
 * A cancel sent from now on finds the market of each order and queues behind this command. A batch over several markets has another queue than
 * the cancels of its orders, so they wait until it is answered.
 */
function noteQueued({ orderMarkets }: CommandPorts, items: readonly Item[], arrival: Arrival): void {
  for (const item of items)
    if (item.kind === 'place') orderMarkets.record(item.order.hash, item.spec.marketId)
  arrival.queued()
}

/** The answer to a batch that was executed before. */
async function replayStored(
  ports: CommandPorts,
  body: PlaceBatchBody,
  stored: StoredBatch | StoredRequest,
): Promise<PlaceBatchAnswer> {
  const hashes = isStoredRequest(stored) ? hashesOfRequest(stored) : placedHashes(stored)
  const orders = await ports.findOrders(hashes)
  const specs = await ports.markets.ofRows([...orders.values()])
  const find = (hash: string) => orders.get(hash) as StoredOrder
  if (!isStoredRequest(stored)) return replayedAnswer(stored, specs, find)
  await ports.epochs.refresh()
  const { bookmark } = ports.epochs
  return replayedAnswer(batchOfRequest(stored, body, { specs, find, bookmark }), specs, find)
}
