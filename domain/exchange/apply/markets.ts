/** Dispatches market rows: each kind goes to the function of its subject. */
import { invariant, violated } from '../../invariant.ts'
import type { MarketEndedRow } from '../../journal/action-rows.ts'
import type { AdjustmentChanged } from '../../journal/adjustment-row.ts'
import type { HaircutFixedRow } from '../../journal/ending-rows.ts'
import type {
  AveragesChange,
  MarketListed,
  MarketRow,
  PositionsMoved,
  PricesUpdated,
  ProtectionAnnounced,
  StoredInterval,
} from '../../journal/journal-row.ts'
import type { MarginNoncesInvalidated } from '../../journal/margin-nonces-row.ts'
import { isAdjustment } from '../../journal/move-cause.ts'
import type { MarketKind } from '../../market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../market/price-protection.ts'
import type { Millis, Price, Rate, UserId } from '../../units.ts'
import type { ExchangeState } from '../state.ts'
import { keyOfFloor, keyOfLiquidation, keyOfNonce } from '../tables/chain.ts'
import { noProgress } from '../tables/markets.ts'
import { dropAction, mineSingle, QUEUE_HANDLERS, settleFunding } from './actions.ts'
import { confirmPart, matchBatch, settlePart, submitPart, voidBatch } from './batches.ts'
import { addFunds, changeMarket, changeProgress, moveMined, type Place } from './change.ts'
import { endOrder, placeOrder, reserveOrder, settleStatus, triggerOrder, widenOrder } from './orders.ts'
import { releaseEnded } from './release.ts'

/** Applies one kind of row to a state. */
type Handler<Row> = (state: ExchangeState, place: Place, row: Row) => void
type Handlers = { readonly [Kind in MarketRow['kind']]: Handler<Extract<MarketRow, { readonly kind: Kind }>> }

const HANDLERS: Handlers = {
  market_listed: listMarket,
  order_placed: placeOrder,
  order_triggered: triggerOrder,
  order_ending: endOrder,
  order_ended: endOrder,
  reservation_changed: reserveOrder,
  orders_protected: () => {},
  batch_cleared: matchBatch,
  part_submitted: submitPart,
  part_settled(state, place, row) {
    settlePart(state, place, row)
    settleFunding(state, place, row)
  },
  part_confirmed: confirmPart,
  batch_voided: voidBatch,
  positions_moved: movePositions,
  prices_updated: updatePrices,
  mark_held: (state, place, { mark }) =>
    changeProgress(state, place, { isMarkHeld: mark !== null, heldMark: BigInt(mark ?? 0) as Price }),
  reserved_fee_changed: (state, place, { fee, after }) =>
    changeProgress(state, place, {
      reservedFee: BigInt(fee) as Rate,
      reservingAfter: after as UserId | null,
    }),
  ...QUEUE_HANDLERS,
  action_dropped: dropAction,
  funding_updated: mineSingle,
  inheritance_failed: mineSingle,
  market_ended: endMarket,
  ending_changed(state, place, row) {
    const { expires_at, settling_at, dispute_window } = row.rollback ? row.before : row
    changeMarket(state, place, { expires_at, settling_at, dispute_window })
  },
  terms_changed: (state, place, row) =>
    changeMarket(state, place, { terms: row.rollback ? row.before : row.terms }),
  terms_stated: (state, place, { terms }) => changeMarket(state, place, { terms }),
  backstop_changed(state, place, row) {
    const { backstop, backstop_cap } = row.rollback ? row.before : row
    changeMarket(state, place, { backstop, backstop_cap })
  },
  fees_announced: (state, place, { fee_periods }) => changeMarket(state, place, { fee_periods }),
  protection_announced: announceProtection,
  final_price_reported: (state, place, row) =>
    changeMarket(state, place, { final_report: row.rollback ? row.before : row.report }),
  haircut_fixed: fixHaircut,
  market_restricted: (state, place, { mode }) => changeMarket(state, place, { mode }),
  calendar_set: (state, place, { calendar }) => changeMarket(state, place, { calendar }),
  impact_notional_set: (state, place, { notional }) =>
    changeMarket(state, place, { impact_notional: notional }),
  ended_released: releaseEnded,
  margin_nonces_invalidated: invalidateNonces,
  adjustment_changed: changeAttempt,
  liquidation_changed(state, place, row) {
    widenOrder(state, place, row)
    if (row.step === 'ended') state.liquidations.remove(keyOfLiquidation(place.marketId, row.user_id))
  },
  liquidation_progressed: (state, { marketId }, { running }) =>
    state.liquidations.put({ ...running, marketId }),
}

export function applyMarketRow(state: ExchangeState, place: Place, row: MarketRow): void {
  const handle = HANDLERS[row.kind] as Handler<MarketRow> | undefined
  if (handle === undefined) throw violated(`a row of a market has a known kind, received ${row.kind}`)
  handle(state, place, row)
}

function listMarket(
  state: ExchangeState,
  { marketId }: Place,
  { spec, price_protection }: MarketListed,
): void {
  const protection = price_protection ?? DEFAULT_PRICE_PROTECTION[spec.kind as MarketKind].toString()
  state.markets.put({
    market_id: marketId,
    spec,
    mode: 'open',
    terms: null,
    fee_periods: [],
    price_protection: protection,
    next_price_protection: null,
    next_price_protection_at: null,
    impact_notional: null,
    calendar: spec.fundingSession === true ? 'NYSE' : null,
    final_report: null,
    ended: null,
    expires_at: Number(spec.expiresAt),
    settling_at: 0,
    dispute_window: Number(spec.disputeWindow),
    backstop: null,
    backstop_cap: '0',
  })
  state.progress.put(noProgress(marketId, BigInt(spec.takerFee) as Rate))
}

function endMarket(state: ExchangeState, place: Place, row: MarketEndedRow): void {
  mineSingle(state, place, row)
  const { how, price, price_at, at: ended_at, pool = '0', mode_before } = row
  const ended = { how, price, price_at, ended_at, pool, deficit: '0', haircut: null }
  changeMarket(state, place, row.rollback ? { mode: mode_before, ended: null } : { mode: 'settled', ended })
}

function announceProtection(state: ExchangeState, place: Place, row: ProtectionAnnounced): void {
  const { price_protection, next_price_protection, next_price_protection_at } = row
  changeMarket(state, place, { price_protection, next_price_protection, next_price_protection_at })
}

function updatePrices(state: ExchangeState, place: Place, row: PricesUpdated): void {
  changeProgress(state, place, {
    markPrice: BigInt(row.mark_price) as Price,
    oraclePrice: BigInt(row.oracle_price) as Price,
    oracleAt: row.oracle_at as Millis,
    pricesAt: row.at as Millis,
  })
  if (row.averages !== undefined) changeAverages(state, place, row.averages)
}

function changeAverages(state: ExchangeState, { marketId }: Place, change: AveragesChange): void {
  const { basis, basis_at, premium_at, first, premium: changed } = change
  const intervals = new Map<number, StoredInterval>()
  for (const interval of state.averages.get(String(marketId))?.premium ?? [])
    intervals.set(interval[0], interval)
  for (const interval of changed) intervals.set(interval[0], interval)
  const kept = [...intervals.values()].filter(([from]) => first !== null && from >= first)
  const premium = kept.sort(([a], [b]) => a - b)
  state.averages.put({ market_id: marketId, basis, basis_at, premium_at, premium })
}

function fixHaircut(state: ExchangeState, place: Place, { rollback, pool, owed }: HaircutFixedRow): void {
  const { ended } = state.markets.need(String(place.marketId))
  if (ended === null) return
  changeMarket(state, place, { ended: { ...ended, haircut: rollback ? null : { pool, owed } } })
}

function invalidateNonces(state: ExchangeState, { marketId }: Place, row: MarginNoncesInvalidated): void {
  const { account, block } = row
  const minimum = row.rollback ? row.before : row.minimum
  if (minimum === '0') state.nonceFloors.remove(keyOfFloor({ market_id: marketId, account }))
  else state.nonceFloors.put({ market_id: marketId, account, minimum, block })
}

function movePositions(state: ExchangeState, place: Place, row: PositionsMoved): void {
  const sign = row.rollback ? -1n : 1n
  for (const order of row.orders ?? []) settleStatus(state, place, order, row)
  moveMined(state, place, row, () => true)
  for (const { user_id, free_delta } of row.balances)
    addFunds(state, user_id, { free: sign * BigInt(free_delta) })
  if (row.deficit !== undefined) addDeficit(state, place, sign * BigInt(row.deficit))
  if (row.adjustment !== undefined && isAdjustment(row)) useNonce(state, place, row)
  if (row.action_id !== undefined) mineSingle(state, place, row)
}

function addDeficit(state: ExchangeState, place: Place, deficit: bigint): void {
  const { ended } = state.markets.need(String(place.marketId))
  if (ended === null) return
  changeMarket(state, place, { ended: { ...ended, deficit: (BigInt(ended.deficit) + deficit).toString() } })
}

function useNonce(state: ExchangeState, { marketId }: Place, row: PositionsMoved): void {
  invariant(
    row.adjustment !== undefined && row.account !== undefined,
    'an adjustment has a nonce and an account',
  )
  const used = { market_id: marketId, user_id: row.account, nonce: row.adjustment.nonce }
  if (row.rollback) state.usedNonces.remove(keyOfNonce(used))
  else state.usedNonces.put(used)
}

function changeAttempt(state: ExchangeState, { marketId, seq }: Place, row: AdjustmentChanged): void {
  const { adjustment_id, user_id, adjustment, status, tx_hash, failure_kind, failure_reason } = row
  const before = state.attempts.get(adjustment_id)
  const fixed = row.request ?? before
  invariant(fixed !== undefined, 'the first row of an adjustment attempt has its request')
  const { digest, nonce, request, hold, pays, cancelled_orders } = fixed
  const { as_of = null, relayer = null, relayer_nonce = null, max_removable = null, gas_used = null } = row
  state.attempts.put({
    adjustment_id,
    market_id: marketId,
    user_id,
    kind: adjustment,
    status,
    digest,
    nonce,
    request,
    hold,
    pays,
    cancelled_orders,
    held: (BigInt(before?.held ?? 0) + BigInt(row.reserved_delta)).toString(),
    as_of,
    relayer,
    relayer_nonce,
    tx_hash,
    moved: row.moved ?? null,
    max_removable,
    gas_used,
    failure_kind,
    failure_reason,
    seq,
    created_at: row.created_at,
    updated_at: row.at,
  })
  addFunds(state, user_id, { reserved: BigInt(row.reserved_delta) })
}
