/** Placing many orders by one command. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { type Problem, validationError } from '../http/problems.ts'
import { compileValidator } from '../http/validation.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import { PlaceOrderBody } from '../order-entry/schema.ts'
import type { Signed } from '../ports.ts'
import { answerKept, requestOf } from './client-requests.ts'
import type { Item, PlaceItem } from './command.ts'
import { refuseWhole } from './decide.ts'
import { parseOrder } from './parse-order.ts'
import { type KeptBatch, keepBatch, placedHashes, tellAgain, tellFirst } from './stored-answer.ts'
import type { IntakePorts } from './submit-single.ts'

/** The answer as JSON. */
export type JsonText = string

const validate = compileValidator({
  schema: PlaceOrderBody,
  method: 'POST',
  url: '/v0/orders/place/batch',
  httpPart: 'body',
}) as (value: unknown) => { readonly error?: readonly Problem[] } | boolean

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** As for a single placement, but for the signer. */
async function parseItem(
  { markets }: Pick<IntakePorts, 'markets'>,
  { address }: Caller,
  body: PlaceOrderBody,
): Promise<Signed | ApiError> {
  try {
    if (!isObject(body)) throw new ApiError('INVALID_FIELD', { expected: 'a signed order', received: body })
    const checked = validate(body)
    const problems = typeof checked === 'object' ? checked.error : undefined
    if (problems) throw validationError(problems, body, PlaceOrderBody)
    const spec = await markets.byId(Number(body.market_id))
    return { spec, order: parseOrder(spec, address, body), signature: body.signature }
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** Each order checked as far as no lock is needed, in their order. */
async function itemsOf(
  ports: IntakePorts,
  caller: Caller,
  bodies: readonly PlaceOrderBody[],
): Promise<Item[]> {
  const parsed = await Promise.all(bodies.map((body) => parseItem(ports, caller, body)))
  const verified = await ports.verifier.verifyAll(
    parsed.filter((item): item is Signed => !(item instanceof ApiError)),
  )
  let next = 0
  return parsed.map((item): Item => {
    const order = item instanceof ApiError ? item : verified[next++]
    if (order instanceof ApiError) return { kind: 'refused', error: order }
    return { kind: 'place', spec: (item as Signed).spec, order } as PlaceItem
  })
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
  ports: IntakePorts,
  caller: Caller,
  body: PlaceBatchBody,
): Promise<JsonText> {
  const { userId } = caller
  const request = requestOf('place/batch', body)
  const items = await itemsOf(ports, caller, body.orders)
  if (items.some(({ kind }) => kind === 'refused')) {
    // Perhaps only by now, and the batch was done before: the look in its transaction would come too late.
    const kept = await answerKept(ports.db, userId, request)
    if (kept !== null) return JSON.stringify(await tellKept(ports, JSON.parse(kept)))
  }
  const isAtomic = body.mode === 'atomic'
  if (isAtomic) refuseWhole(errorsOf(items))
  // From now on a cancel finds their markets, and waits there behind them.
  for (const item of items)
    if (item.kind === 'place') ports.hashes.remember(item.order.hash, item.spec.marketId)
  // Told after the commit: nobody shall wait behind the locks for what fifty orders look like.
  const tell = await ports.lanes.submit<() => PlaceBatchAnswer | Promise<PlaceBatchAnswer>>({
    kind: 'place',
    userId,
    markets: marketsOf(items),
    items,
    isAtomic,
    request,
    answer(report) {
      const batch = keepBatch(body, items, report)
      return { result: () => tellFirst(batch, items, report), kept: JSON.stringify(batch) }
    },
    // Its orders are read by their hashes: one that has been refused by now stands in no item.
    replay: (text) => () => tellKept(ports, JSON.parse(text)),
  })
  return JSON.stringify(await tell())
}

/** The answer to a batch that was done before. */
async function tellKept({ db, markets }: IntakePorts, batch: KeptBatch): Promise<PlaceBatchAnswer> {
  const hashes = placedHashes(batch)
  const orders =
    hashes.length === 0 ? [] : await db.selectFrom('orders').selectAll().where('hash', 'in', hashes).execute()
  const specs = await markets.ofRows(orders)
  const byHash = new Map(orders.map((order) => [order.hash, order]))
  return tellAgain(batch, specs, (hash) => byHash.get(hash))
}
