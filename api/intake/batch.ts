/** Placing many orders by one command. */
import type { MarketSpec } from '../../domain/market.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError, itemError } from '../errors.ts'
import { type Problem, validationError } from '../http/problems.ts'
import { compileValidator } from '../http/validation.ts'
import type { Signed } from '../ports.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../schemas/command.ts'
import { PlaceOrderBody } from '../schemas/order.ts'
import { orderView } from '../views/order.ts'
import { balanceView } from '../views/position.ts'
import type { Item, Outcome, PlaceItem, Report } from './commands.ts'
import { refuseWhole } from './decide.ts'
import { parseOrder } from './parse-order.ts'
import { answerKept, requestOf } from './requests.ts'
import type { IntakePorts } from './single.ts'

/** The answer as JSON: made once, stored and sent. */
export type JsonText = string

const validate = compileValidator({
  schema: PlaceOrderBody,
  method: 'POST',
  url: '/v0/orders/place/batch',
  httpPart: 'body',
}) as (value: unknown) => { readonly error?: readonly Problem[] } | boolean

/** As for a single placement, but for the signer. */
async function parseItem(
  { markets }: Pick<IntakePorts, 'markets'>,
  { address }: Caller,
  body: PlaceOrderBody,
): Promise<Signed | ApiError> {
  try {
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

function batchView(
  { client_request_id, mode }: PlaceBatchBody,
  items: readonly Item[],
  { outcomes, balance, read_after }: Report,
): PlaceBatchAnswer {
  const results = outcomes.map((outcome, at) => resultView(items[at] as Item, outcome))
  const refused = outcomes.filter((outcome) => outcome instanceof ApiError).length
  return {
    ...{
      client_request_id,
      mode,
      is_duplicate: false,
      accepted: outcomes.length - refused,
      refused,
      results,
    },
    balance: balanceView(balance),
    read_after,
  }
}

function resultView(item: Item, outcome: Outcome): PlaceBatchAnswer['results'][number] {
  if (outcome instanceof ApiError) return { error: itemError(outcome) }
  const { order, isDuplicate, read_after } = outcome
  return { order: orderView((item as PlaceItem).spec, order), is_duplicate: isDuplicate, read_after }
}

const repeated = (kept: JsonText): JsonText => JSON.stringify({ ...JSON.parse(kept), is_duplicate: true })

export async function placeBatch(
  ports: IntakePorts,
  caller: Caller,
  body: PlaceBatchBody,
): Promise<JsonText> {
  const { userId } = caller
  const request = requestOf('place/batch', body)
  const kept = await answerKept(ports.db, userId, request)
  if (kept !== null) return repeated(kept)

  const items = await itemsOf(ports, caller, body.orders)
  const isAtomic = body.mode === 'atomic'
  if (isAtomic) refuseWhole(errorsOf(items))
  const text = await ports.lanes.submit<JsonText>({
    kind: 'place',
    userId,
    markets: marketsOf(items),
    items,
    isAtomic,
    request,
    answer(report) {
      const answer = JSON.stringify(batchView(body, items, report))
      return { result: answer, kept: answer }
    },
    replay: repeated,
  })
  for (const item of items)
    if (item.kind === 'place') ports.hashes.remember(item.order.hash, item.spec.marketId)
  return text
}
