/** Placing or cancelling one order: check what needs no lock, wait for the market's transaction, answer. */

import type { Db } from '../../db/client.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { type BalanceParts, balanceView } from '../accounts/view.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { fillsOfOrder } from '../fills/query.ts'
import type { Fill } from '../fills/schema.ts'
import { fillView } from '../fills/view.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { CancelAnswer, PlaceOrderAnswer, PlaceOrderBody } from '../order-entry/schema.ts'
import { orderView } from '../orders/view.ts'
import type { Answer, Cancelled, Placed, Report } from './command.ts'
import type { CommandQueues } from './command-dispatcher.ts'
import type { HashIndex } from './order-market-index.ts'
import { parseOrder } from './parse-order.ts'
import type { Verifier } from './verify-signature.ts'

export interface IntakePorts {
  readonly db: Db
  readonly lanes: CommandQueues
  readonly hashes: HashIndex
  readonly markets: MarketDirectory
  readonly verifier: Verifier
}

const MAX_DUPLICATE_FILLS = 1000

/** Fills exist only where the order is not new. */
async function fillsOf(db: Db, spec: MarketSpec, { isDuplicate, order }: Placed): Promise<Fill[]> {
  if (!isDuplicate || order.filled + order.settling === 0) return []
  const rows = await fillsOfOrder(db, order.order_id, { limit: MAX_DUPLICATE_FILLS, cursor: null })
  return rows.map((row) => fillView(spec, row))
}

/** The outcome of a command's only item, or its refusal. */
function only<Result extends Placed | Cancelled>({ outcomes }: Report): Result {
  const [outcome] = outcomes
  if (outcome instanceof ApiError) throw outcome
  return outcome as Result
}

/** A command of one item, without an id: it is recognised by its order. */
export const single = <Result>(answer: (report: Report) => Result) => ({
  isAtomic: false,
  request: null,
  answer: (report: Report): Answer<Result> => ({ result: answer(report), kept: null }),
  replay(): never {
    throw new Error('a command without an id is not replayed')
  },
})

export async function placeOrder(
  { db, lanes, hashes, markets, verifier }: IntakePorts,
  { userId, address }: Caller,
  body: PlaceOrderBody,
): Promise<PlaceOrderAnswer> {
  const spec = await markets.byId(Number(body.market_id))
  const order = await verifier.verify(spec, parseOrder(spec, address, body), body.signature)
  // From now on a cancel finds its market, and waits there behind it.
  hashes.remember(order.hash, spec.marketId)
  const { placed, balance } = await lanes.submit<{ placed: Placed; balance: BalanceParts }>({
    kind: 'place',
    userId,
    markets: [spec],
    items: [{ kind: 'place', spec, order }],
    ...single((report) => ({ placed: only<Placed>(report), balance: report.balance })),
  })
  return {
    order: orderView(spec, placed.order),
    fills: await fillsOf(db, spec, placed),
    is_duplicate: placed.isDuplicate,
    balance: balanceView(balance),
    read_after: placed.read_after,
  }
}

export async function cancelOrder(
  { lanes, hashes, markets }: IntakePorts,
  { userId }: Caller,
  { hash, reason }: { readonly hash: string; readonly reason: string | null },
): Promise<CancelAnswer> {
  const marketId = (await hashes.marketsOf([hash])).get(hash)
  if (marketId === undefined) throw new ApiError('ORDER_NOT_FOUND', { field: 'order_hash', received: hash })
  const spec = await markets.byId(marketId)
  const result = await lanes.submit<Cancelled>({
    kind: 'cancel',
    userId,
    markets: [spec],
    items: [{ kind: 'cancel', hash, reason }],
    ...single(only<Cancelled>),
  })
  return cancelView(spec, result)
}

export const cancelView = (
  spec: MarketSpec,
  { cancelled, isDuplicate, order, read_after }: Cancelled,
): CancelAnswer => ({ cancelled, is_duplicate: isDuplicate, order: orderView(spec, order), read_after })
