/** Converts liquidations and their steps to their JSON forms. */
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import { mulDivDown, mulDivUp, ONE, type Steps, type Ticks } from '../../domain/units.ts'
import { amount, isoTime, maybeAmount, maybeTime } from '../wire/amounts.ts'
import { errorName } from '../wire/chain-error.ts'
import type { LiquidationRow, StepRow } from './query.ts'
import type { Liquidation, LiquidationStep } from './schema.ts'

const KINDS = { forced: 'forced_fill', inherited: 'inherited', deleveraged: 'deleveraged' } as const

function priced(row: LiquidationRow, price: bigint | null, quantity: bigint) {
  if (price !== null) return { price, notional: mulDivUp(price, quantity, ONE) }
  if (row.value !== null) return { price: mulDivDown(row.value, ONE, quantity), notional: row.value }
  return {
    price: null,
    notional: row.oracle_price === null ? null : mulDivUp(row.oracle_price, quantity, ONE),
  }
}

/** Contains nothing that names the account or links its liquidations. */
export function liquidationView(spec: MarketSpec, row: LiquidationRow): Liquidation {
  const quantity = quantityOf(spec, row.steps as Steps)
  const { price, notional } = priced(
    row,
    row.price === null ? null : priceOf(spec, row.price as Ticks),
    quantity,
  )
  return {
    liquidation_id: row.id,
    market_id: row.market_id,
    symbol: spec.symbol,
    kind: KINDS[row.kind],
    side: row.side,
    ...amount('quantity', quantity),
    ...maybeAmount('price', price),
    ...maybeAmount('notional', notional),
    ...maybeAmount('oracle_price', row.oracle_price),
    oracle_price_at: maybeTime(row.oracle_at),
    batch_id: row.batch_id,
    part: row.part,
    tx_hash: row.tx_hash,
    block_number: row.block,
    created_at: isoTime(row.at),
  }
}

/** A counterparty sees prices and ratios, but not the position of the other account. */
function evidenceView(spec: MarketSpec, { evidence, role }: StepRow): LiquidationStep['evidence'] {
  if (evidence === null) return null
  const own = <Value>(value: Value): Value | null => (role === 'owner' ? value : null)
  const { margin_ratio: ratio } = evidence
  return {
    as_of: isoTime(evidence.as_of),
    ...amount('oracle_price', BigInt(evidence.oracle_price)),
    oracle_price_at: isoTime(evidence.oracle_at),
    ...amount('funding_index', BigInt(evidence.funding_index)),
    ...maybeAmount('margin_ratio', ratio === null ? null : BigInt(ratio)),
    ...amount('threshold', BigInt(evidence.threshold)),
    ...maybeAmount('size', own(quantityOf(spec, evidence.size as Steps))),
    ...maybeAmount('entry_notional', own(BigInt(evidence.entry_notional))),
    ...maybeAmount('margin', own(BigInt(evidence.margin))),
  }
}

export const stepView = (spec: MarketSpec, row: StepRow): LiquidationStep => ({
  step_id: row.id,
  liquidation_id: `${row.market_id}-${row.number}`,
  market_id: row.market_id,
  symbol: spec.symbol,
  role: row.role,
  step: row.step,
  reason: errorName(row.reason),
  order_id: row.role === 'owner' ? row.order_id : null,
  widenings: row.widenings,
  evidence: evidenceView(spec, row),
  legs: row.legs.map(({ place, steps, score }) => ({
    rank: place + 1,
    ...amount('quantity', quantityOf(spec, steps as Steps)),
    ...amount('score', BigInt(score)),
  })),
  created_at: isoTime(row.at),
})
