/** Converts a fill's row to its JSON forms: for its owner, for the public, and as a settlement stage. */
import type { Selectable } from 'kysely'
import type { ReadFillsTable } from '../../db/read-schema.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import type { OrderRow } from '../orders/view.ts'
import { amount, isoTime, maybeAmount, maybeTime } from '../wire/amounts.ts'
import { errorName } from '../wire/chain-error.ts'
import type { Fill, FillProcessing, FillStage, PublicFill, PublicPart } from './schema.ts'

export type FillRow = Selectable<ReadFillsTable>

/** Block times are whole seconds, so a transaction can appear mined before it was sent. The later time is returned. */
const notBefore = (earlier: number | null, time: number | null): number | null =>
  earlier === null || time === null ? time : Math.max(earlier, time)

/** Time of the last change, never before the times of matching and submission. */
export const changedAt = ({ matched_at, submitted_at, updated_at }: FillRow): number =>
  Math.max(matched_at, submitted_at ?? 0, updated_at)

export function fillView(spec: MarketSpec, row: FillRow): Fill {
  return {
    fill_id: row.fill_id,
    order_id: row.order_id,
    user_id: row.user_id,
    market_id: row.market_id,
    symbol: spec.symbol,
    batch_id: row.batch_id,
    part: row.part,
    action_id: row.action_id,
    side: row.side,
    forced: row.forced,
    status: row.status,
    ...amount('price', priceOf(spec, row.price as Ticks)),
    ...amount('quantity', quantityOf(spec, row.steps as Steps)),
    ...amount('taker_quantity', quantityOf(spec, row.taker_steps as Steps)),
    ...maybeAmount(
      'protection_price',
      row.protection_price === null ? null : priceOf(spec, row.protection_price as Ticks),
    ),
    ...amount('fee', row.fee ?? 0n),
    ...maybeAmount('realized_pnl', row.realized_pnl),
    ...maybeAmount('available_margin_delta', row.available_margin_delta),
    tx_hash: row.tx_hash,
    block_number: row.block,
    created_at: isoTime(row.matched_at),
    updated_at: isoTime(changedAt(row)),
    // Older feed rows lack this column.
    builder: row.builder ?? null,
  }
}

/** The public id of a fill. The owner's `fill_id` contains the sequence of the order and would link fills of one order. */
export const publicFillId = ({
  market_id,
  batch_id,
  part,
  place,
}: Pick<FillRow, 'market_id' | 'batch_id' | 'part' | 'place'>): string =>
  `${market_id}-${batch_id}-${part}-${place}`

const ownView = (spec: MarketSpec, row: FillRow) => ({
  fill_id: publicFillId(row),
  side: row.side,
  forced: row.forced,
  ...amount('quantity', quantityOf(spec, row.steps as Steps)),
  ...amount('taker_quantity', quantityOf(spec, row.taker_steps as Steps)),
})

const commonView = (spec: MarketSpec, row: FillRow) => ({
  batch_id: row.batch_id,
  part: row.part,
  status: row.status,
  ...amount('price', priceOf(spec, row.price as Ticks)),
  tx_hash: row.tx_hash,
  block_number: row.block,
  created_at: isoTime(row.matched_at),
  updated_at: isoTime(changedAt(row)),
})

/** Contains nothing that reveals the owner or links fills of one order. */
export const publicFillView = (spec: MarketSpec, row: FillRow): PublicFill => ({
  ...{ market_id: row.market_id, symbol: spec.symbol },
  ...ownView(spec, row),
  ...commonView(spec, row),
})

/** Equal for rows of a part whose `commonView` is equal. */
const stateOf = (row: FillRow): string =>
  [row.status, row.price, row.tx_hash, row.block, row.matched_at, changedAt(row)].join()

/**
 * Fills by part. A part is split by state if some of its fills were voided or settled by the chain alone. A part with
 * one state is shown without fills that `isKnown` names.
 */
export function publicPartsView<Row extends FillRow>(
  spec: MarketSpec,
  rows: readonly Row[],
  isKnown: (row: Row) => boolean,
): PublicPart[] {
  const parts = Map.groupBy(rows, ({ batch_id, part }) => `${batch_id}-${part}`)
  return [...parts.values()].flatMap((fills) => {
    const states = [...Map.groupBy(fills, stateOf).values()]
    const isBrief = states.length === 1 && fills.every(isKnown)
    return states.map((same) => ({
      ...commonView(spec, same[0] as Row),
      ...(!isBrief && { fills: same.map((row) => ownView(spec, row)) }),
    }))
  })
}

/** The settlement stage of a fill. */
const fillStageView = (spec: MarketSpec, row: FillRow): FillStage => {
  const mined = notBefore(row.submitted_at, row.mined_at)
  return {
    fill_id: row.fill_id,
    stage: row.status,
    batch_id: row.batch_id,
    part: row.part,
    action_id: row.action_id,
    tx_hash: row.tx_hash,
    block_number: row.block,
    ...amount('price', priceOf(spec, row.price as Ticks)),
    ...amount('quantity', quantityOf(spec, row.steps as Steps)),
    failure: row.failure === null ? null : errorName(row.failure),
    matched_at: isoTime(row.matched_at),
    submitted_at: maybeTime(row.submitted_at),
    mined_at: maybeTime(mined),
    confirmed_at: maybeTime(notBefore(mined, row.confirmed_at)),
    failed_at: maybeTime(row.failed_at),
    updated_at: isoTime(changedAt(row)),
  }
}

/** Settlement of an order's fills. `stages` counts all fills; `fills` is one page of them. */
export function fillProcessingView(
  spec: MarketSpec,
  order: OrderRow,
  stages: FillProcessing['stages'],
  { fills, next_cursor }: { readonly fills: readonly FillRow[]; readonly next_cursor: string | null },
): FillProcessing {
  const unmined = stages.MATCHED + stages.SUBMITTED + stages.RETRYING
  const quantity = (steps: number): bigint => quantityOf(spec, steps as Steps)
  return {
    order_id: order.order_id,
    order_hash: order.hash,
    market_id: order.market_id,
    symbol: spec.symbol,
    status: order.status,
    settlement_pending: unmined > 0,
    confirmation_pending: unmined + stages.MINED > 0,
    ...amount('quantity', quantity(order.quantity)),
    ...amount('filled_quantity', quantity(order.filled)),
    ...amount('settling_quantity', quantity(order.settling)),
    stages,
    fills: fills.map((row) => fillStageView(spec, row)),
    next_cursor,
  }
}
