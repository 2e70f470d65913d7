/** Converts a position to its JSON form, valued at given prices. */
import type { Selectable } from 'kysely'
import type { ReadPositionsTable } from '../../db/read-schema.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import { equityOf, exposureOf, isFullyCollateralised, ratioOf } from '../../domain/positions/margin.ts'
import {
  bankruptcyPrice,
  type Position as DomainPosition,
  marginOf,
} from '../../domain/positions/position.ts'
import { liquidationPrice } from '../../domain/risk/liquidation-price.ts'
import { type DeleveragingRanks, lightsOf } from '../../domain/risk/rank-lights.ts'
import { type FundingIndex, mulDivDown, ONE, type Price, type Quote, type Steps } from '../../domain/units.ts'
import { amount, isoTime, maybeAmount } from '../wire/amounts.ts'
import type { Position } from './schema.ts'

export type PositionRow = Selectable<ReadPositionsTable>

export interface Prices {
  readonly oracle: Price | null
  readonly mark: Price | null
  readonly fundingIndex: FundingIndex
  /** False once the market is closed. */
  readonly isLiquidated: boolean
  /** Null if they are not known. */
  readonly ranks: DeleveragingRanks | null
}

const toPosition = (row: PositionRow): DomainPosition => ({
  size: row.size as Steps,
  entryNotional: row.entry_notional as Quote,
  foldedMargin: row.folded_margin as Quote,
  leverage: row.leverage,
})

const signed = (spec: MarketSpec, steps: number): bigint => BigInt(steps) * spec.step

function entryPrice(spec: MarketSpec, { size, entryNotional }: DomainPosition): bigint | null {
  if (size === 0) return null
  return mulDivDown(entryNotional, ONE, quantityOf(spec, Math.abs(size) as Steps))
}

/** Null also for a long that owns its entry, and for a short whose margin is below zero at every price. */
function bankruptcy(spec: MarketSpec, position: DomainPosition, fundingIndex: FundingIndex): bigint | null {
  if (position.size === 0 || isFullyCollateralised(spec, position, fundingIndex)) return null
  const ticks = bankruptcyPrice(spec, position, fundingIndex)
  return ticks > 0 ? priceOf(spec, ticks) : null
}

/** The prices and the rank of a position that can be liquidated. */
function liquidationOf(
  spec: MarketSpec,
  position: DomainPosition,
  { fundingIndex, isLiquidated, ranks }: Prices,
) {
  if (!isLiquidated) return { price: null, bankruptcy: null, lights: null }
  return {
    price: liquidationPrice(spec, position, fundingIndex),
    bankruptcy: bankruptcy(spec, position, fundingIndex),
    lights: ranks === null ? null : lightsOf(spec, position, ranks),
  }
}

function atPrices(spec: MarketSpec, position: DomainPosition, { oracle, mark, fundingIndex }: Prices) {
  const margin = marginOf(position, fundingIndex)
  const exposure = oracle === null ? null : exposureOf(spec, position, fundingIndex, oracle)
  const equityAtMark = mark === null ? null : equityOf(spec, position, fundingIndex, mark)
  return {
    margin,
    unrealizedPnl: equityAtMark === null ? null : equityAtMark - margin,
    notional: exposure === null ? null : exposure.notional / ONE,
    ratio: exposure === null ? null : ratioOf(exposure),
  }
}

export function positionView(spec: MarketSpec, row: PositionRow, prices: Prices): Position {
  const position = toPosition(row)
  const { margin, unrealizedPnl, notional, ratio } = atPrices(spec, position, prices)
  const liquidation = liquidationOf(spec, position, prices)
  return {
    user_id: row.user_id,
    market_id: row.market_id,
    symbol: spec.symbol,
    side: row.size === 0 ? null : row.size > 0 ? 'LONG' : 'SHORT',
    ...amount('size', signed(spec, row.size)),
    ...amount('pending_size', signed(spec, row.pending)),
    ...maybeAmount('entry_price', entryPrice(spec, position)),
    ...amount('entry_notional', row.entry_notional),
    ...amount('margin', margin),
    leverage: row.leverage,
    ...maybeAmount('mark_price', prices.mark),
    ...maybeAmount('oracle_price', prices.oracle),
    ...maybeAmount('unrealized_pnl', unrealizedPnl),
    ...maybeAmount('notional', notional),
    ...maybeAmount('margin_ratio', ratio),
    ...maybeAmount('liquidation_price', liquidation.price),
    ...maybeAmount('bankruptcy_price', liquidation.bankruptcy),
    adl_rank: liquidation.lights,
    ...amount('realized_pnl', row.realized_pnl),
    ...amount('fees', row.fees),
    updated_at: isoTime(row.updated_at),
  }
}
