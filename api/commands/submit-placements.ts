/** Places up to 50 orders by one command: validates each order, submits the command, builds the answer, also to a repetition. */
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { type Problem, validationError } from '../http/problems.ts'
import { compileValidator } from '../http/validation.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import { PlaceOrderBody } from '../order-entry/schema.ts'
import type { Signed } from '../ports.ts'
import type { Arrival } from './arriving-placements.ts'
import { requestOf, storedRequest } from './client-requests.ts'
import type { Item, PlaceItem, StoredRequest } from './command.ts'
import { placementIdentity, requestIdentity, saltedOrder } from './command-identity.ts'
import { afterExecution } from './earlier-attempts.ts'
import { parseOrder } from './parse-order.ts'
import { firstAnswer, hashesOfRequest, repeatedAnswer } from './stored-answer.ts'
import type { StoredOrder } from './stored-orders.ts'
import type { CommandPorts } from './submit-single.ts'
import { wholeError } from './whole-error.ts'

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

/** One item per order, in the order of the request, after all checks that need no state of the exchange. */
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

export async function placeBatch(
  ports: CommandPorts,
  caller: Caller,
  body: PlaceBatchBody,
  arrival: Arrival,
): Promise<JsonText> {
  const { userId, address: maker } = caller
  const { attempts, dispatcher, logger } = ports
  const request = requestOf('place/batch', body)
  const identity = requestIdentity(ports.db, userId, request)
  const items = await itemsOf(ports, caller, body.orders)
  const isAtomic = body.mode === 'atomic'
  if (items.some(({ kind }) => kind === 'refused')) {
    // The batch may have been executed before, when the order was still valid: its answer is repeated instead of rejecting it now.
    const stored = await storedRequest(ports.db, userId, request)
    if (stored !== null)
      return afterExecution(logger, {}, async () => JSON.stringify(await repeated(ports, body, stored)))
    if (isAtomic)
      await attempts.checking(identity, async () => {
        throw wholeError(errorsOf(items))
      })
  }
  const executing = attempts.executing(identity, () =>
    dispatcher.submit({ kind: 'place', userId, maker, items, isAtomic, request }),
  )
  noteSent(ports, items, arrival)
  const executed = await executing
  return afterExecution(logger, {}, async () =>
    JSON.stringify(
      'stored' in executed
        ? await repeated(ports, body, executed.stored)
        : firstAnswer(body, items, executed.report),
    ),
  )
}

/** A cancel sent from now on finds the market of each order and is sent behind this command. */
function noteSent({ orderMarkets }: CommandPorts, items: readonly Item[], arrival: Arrival): void {
  for (const item of items)
    if (item.kind === 'place') orderMarkets.record(item.order.hash, item.spec.marketId)
  arrival.sent()
}

/** The answer to a batch that was executed before. Orders are read by the stored hashes: an order that would be rejected now is in no item. */
async function repeated(
  { findOrders, markets, epochs }: CommandPorts,
  body: PlaceBatchBody,
  stored: StoredRequest,
): Promise<PlaceBatchAnswer> {
  const orders = await findOrders(hashesOfRequest(stored))
  const specs = await markets.ofRows([...orders.values()])
  const find = (hash: string) => orders.get(hash) as StoredOrder
  await epochs.refresh()
  return repeatedAnswer(body, stored, { specs, find, bookmark: epochs.bookmark })
}
