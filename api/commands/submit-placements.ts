/** Places up to 50 orders by one command: validates each order, submits the command, builds the answer, also to a repetition. */
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import type { PlaceBatchAnswer, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import { PlaceOrderBody } from '../order-entry/schema.ts'
import type { Arrival } from './arriving-placements.ts'
import { requestOf, storedRequest } from './client-requests.ts'
import type { ClientRequest, Executed, Item, StoredRequest } from './command.ts'
import { requestIdentity } from './command-identity.ts'
import { afterExecution } from './earlier-attempts.ts'
import { itemParser } from './parse-items.ts'
import { withLaterPlacements } from './repeated-refusals.ts'
import { firstAnswer, hashesOfRequest, repeatedAnswer } from './stored-answer.ts'
import type { StoredOrder } from './stored-orders.ts'
import type { CommandPorts } from './submit-single.ts'
import { wholeError } from './whole-error.ts'

/** The serialized answer, and its bookmark, which a connection repeats beside it. */
export interface WrittenAnswer {
  readonly json: string
  readonly readAfter: PlaceBatchAnswer['read_after']
}

export const written = (answer: Pick<PlaceBatchAnswer, 'read_after'>): WrittenAnswer => ({
  json: JSON.stringify(answer),
  readAfter: answer.read_after,
})

const itemsOf = itemParser<PlaceOrderBody>({
  schema: PlaceOrderBody,
  url: '/v0/orders/place/batch',
  expected: 'a signed order',
  orderOf: (body) => body,
  itemOf: (_, order) => ({ kind: 'place', ...order }),
})

/** A batch of placements or replacements, up to its signatures. */
export interface Batch {
  readonly request: ClientRequest
  readonly items: readonly Item[]
  readonly isAtomic: boolean
}

/**
 * Executes a batch, or returns what its first execution has stored. `mayBeSent`: resolves when the batch may be sent. Throws the error of the whole batch
 * if it is atomic and an item is refused.
 */
export async function executeBatch(
  ports: CommandPorts,
  { userId, address: maker }: Caller,
  { request, items, isAtomic }: Batch,
  { arrival, mayBeSent }: { readonly arrival: Arrival; readonly mayBeSent?: () => Promise<void> },
): Promise<Executed> {
  const { attempts, db, dispatcher } = ports
  const identity = requestIdentity(db, userId, request)
  const errors = items.map((item) => (item.kind === 'refused' ? item.error : item))
  if (errors.some((item) => item instanceof ApiError)) {
    // The batch may have been executed before, when each order was still valid: its answer is repeated instead of rejecting it now.
    const stored = await storedRequest(db, userId, request)
    if (stored !== null) return { stored }
    if (isAtomic)
      await attempts.checking(identity, async () => {
        throw wholeError(errors)
      })
  }
  await mayBeSent?.()
  const executing = attempts.executing(identity, () =>
    dispatcher.submit({ kind: 'place', userId, maker, items, isAtomic, request }),
  )
  noteSent(ports, items, arrival)
  return executing
}

export async function placeBatch(
  ports: CommandPorts,
  caller: Caller,
  body: PlaceBatchBody,
  arrival: Arrival,
): Promise<WrittenAnswer> {
  const items = await itemsOf(ports, caller, body.orders)
  const batch = { request: requestOf('place/batch', body), items, isAtomic: body.mode === 'atomic' }
  const executed = await executeBatch(ports, caller, batch, { arrival })
  return afterExecution(ports.logger, {}, async () =>
    written(
      'stored' in executed
        ? await repeated(ports, caller, body, executed.stored)
        : firstAnswer(body, items, executed.report),
    ),
  )
}

/** A cancel sent from now on finds the market of each order and is sent behind this command. */
function noteSent({ orderMarkets }: CommandPorts, items: readonly Item[], arrival: Arrival): void {
  for (const item of items)
    if (item.kind === 'place' || item.kind === 'replace')
      orderMarkets.record(item.order.hash, item.spec.marketId)
  arrival.sent()
}

/** The answer to a batch that was executed before. Orders are read by the stored hashes: an order that would be rejected now is in no item. */
async function repeated(
  ports: CommandPorts,
  { address }: Caller,
  body: PlaceBatchBody,
  stored: StoredRequest,
): Promise<PlaceBatchAnswer> {
  const { findOrders, markets, epochs } = ports
  const orders = await findOrders(hashesOfRequest(stored))
  const specs = await markets.ofRows([...orders.values()])
  const find = (hash: string) => orders.get(hash) as StoredOrder
  await epochs.refresh()
  const answer = repeatedAnswer(body, stored, { specs, find, bookmark: epochs.bookmark })
  return { ...answer, results: await withLaterPlacements(ports, address, body.orders, answer.results) }
}
