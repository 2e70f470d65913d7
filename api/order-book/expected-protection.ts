/** The protection price that a market order would have in the next batch, from the book as it is projected. */
import type { Db } from '../../db/client.ts'
import { referenceSteps } from '../../domain/auction/protection.ts'
import { priceBand } from '../../domain/market/band.ts'
import { type MarketSpec, priceOf } from '../../domain/market/market.ts'
import { expectedProtection, type QuotedMarket } from '../../domain/orders/estimate.ts'
import { isMarketType } from '../../domain/orders/order.ts'
import type { Millis, Price } from '../../domain/units.ts'
import { offChainTermsAt } from '../markets/query.ts'
import type { OrderRow } from '../orders/view.ts'
import { depthFacing, type Facing } from './depth-query.ts'

/** Inputs of the reference price. */
export type Quotes = Pick<QuotedMarket, 'depth' | 'priceProtection'>

/** A level has at least one step, so `referenceSteps` levels suffice. */
export async function readQuotes(
  db: Db,
  spec: MarketSpec,
  { userId, side }: Omit<Facing, 'marketId'>,
  now: Millis,
): Promise<Quotes> {
  const [{ depth }, { priceProtection }] = await Promise.all([
    depthFacing(db, { marketId: spec.marketId, userId, side }, referenceSteps(spec)),
    offChainTermsAt(db, spec, now),
  ])
  return { depth, priceProtection }
}

type PlacedOrder = Pick<OrderRow, 'side' | 'type' | 'status' | 'filled' | 'settling'>

/** No batch has run with the order yet. */
const awaitsBatch = ({ status, filled, settling }: PlacedOrder): boolean =>
  (status === 'OPEN' || status === 'PENDING_TRIGGER') && filled + settling === 0

/** Null for a limit order, after the order's batch, and if the quotes or the oracle price are not known. */
export function expectedProtectionPrice(
  spec: MarketSpec,
  order: PlacedOrder,
  oracle: Price | null,
  quotes: Quotes | null,
): Price | null {
  if (!isMarketType(order.type) || !awaitsBatch(order) || oracle === null || quotes === null) return null
  const market = { spec, oracle, band: priceBand(spec, oracle), ...quotes }
  return priceOf(spec, expectedProtection(order, market).price)
}
