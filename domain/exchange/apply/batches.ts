/** Applies rows of batches: match, settlement of parts, confirmation and void. */
import { invariant } from '../../invariant.ts'
import type {
  BatchCleared,
  BatchTerms,
  BatchVoided,
  FillSettled,
  MatchedFill,
  PartConfirmed,
  PartSettled,
  PartSubmitted,
} from '../../journal/batch-rows.ts'
import { isExit } from '../../orders/brackets.ts'
import { acceptedSeq, isRemainder } from '../../orders/order.ts'
import type { ClosingReason } from '../../orders/order-state.ts'
import type { MarketId, Millis, Quote, Seq, Steps, Ticks, UserId } from '../../units.ts'
import type { ExchangeState } from '../state.ts'
import { type ActionState, actionKey, batchKey } from '../tables/markets.ts'
import type { FillRow, OrderRow } from '../tables/orders.ts'
import {
  addFunds,
  changeNote,
  changeProgress,
  findOrder,
  moveMined,
  needOrder,
  type Place,
  setMatched,
} from './change.ts'
import { settleStatus } from './orders.ts'

// ---------------------------------------------------------------------- fills

/** Batch, part and book seq from a fill id. `seq` is NaN if only the chain has the fill. */
function keyOfFill(fillId: string): [batchId: number, part: number, seq: number] {
  const [, batchId, part, seq] = fillId.split('-')
  return [Number(batchId), Number(part), Number(seq)]
}

const findFill = (state: ExchangeState, marketId: MarketId, fillId: string): FillRow | undefined =>
  state.fills.get(marketId, ...keyOfFill(fillId))

/** The fills of a part. */
function fillsOf(state: ExchangeState, marketId: MarketId, batchId: number, part: number): FillRow[] {
  return (state.partFills.get(`${batchKey(marketId, batchId)}-${part}`) ?? []).map((seq) =>
    state.fills.need(marketId, batchId, part, seq),
  )
}

// ---------------------------------------------------------------------- match

const termsOf = (row: BatchCleared): BatchTerms => {
  const { head, maker_fee, taker_fee, oracle_signatures, matched } = row
  invariant(
    head !== undefined &&
      maker_fee !== undefined &&
      taker_fee !== undefined &&
      oracle_signatures !== undefined &&
      matched !== undefined,
    'a batch_cleared row has the terms of its settlement',
  )
  return { head, maker_fee, taker_fee, oracle_signatures, matched }
}

export function matchBatch(state: ExchangeState, place: Place, row: BatchCleared): void {
  const { marketId } = place
  const { matched, head, ...terms } = termsOf(row)
  const { batch_id, as_of, price, parts, oracle_price, oracle_at } = row
  state.batches.put({
    market_id: marketId,
    batch_id,
    as_of,
    price,
    parts,
    oracle_price,
    oracle_at,
    ...terms,
    status: 'SETTLING',
    changed: place.seq,
  })
  const places = new Map<number, number>()
  for (const fill of row.fills) {
    const at = places.get(fill.part) ?? 0
    places.set(fill.part, at + 1)
    matchFill(state, place, row, fill, at)
  }
  for (const { order_id, reason, closed_by } of row.closing) {
    const order = needOrder(state, place, order_id)
    const stays = closed_by !== undefined || isRemainder(reason)
    state.orders.put({
      ...order,
      status: stays ? order.status : 'CANCEL_PENDING_FINALIZE',
      closingReason: reason as ClosingReason,
    })
    if (closed_by !== undefined) changeNote(state, order_id, { closedBy: closed_by })
  }
  setMatched(state, place, matched)
  queueParts(state, place, row)
  changeProgress(state, place, {
    lastBatchId: batch_id,
    lastBatchHead: head as Seq,
    lastAsOf: as_of as Millis,
    lastPrice: price as Ticks,
    lastPriceAt: as_of as Millis,
  })
}

function matchFill(
  state: ExchangeState,
  place: Place,
  { batch_id }: BatchCleared,
  fill: MatchedFill,
  at: number,
): void {
  const order = needOrder(state, place, fill.order_id)
  const held = BigInt(fill.held) as Quote
  const partialSlot = fill.partial_slot ?? order.partialSlot
  state.orders.put({
    ...order,
    settling: (order.settling + fill.steps) as Steps,
    openable: (order.openable - (fill.opening ?? 0)) as Steps,
    reserved: (order.reserved - held) as Quote,
    held: (order.held + held) as Quote,
    partialSlot,
  })
  state.fills.put({
    marketId: place.marketId,
    batchId: batch_id,
    part: fill.part,
    place: at,
    accepted: order.accepted,
    seq: order.seq,
    account: fill.user_id as UserId,
    side: fill.side,
    steps: fill.steps as Steps,
    takerSteps: fill.taker_steps as Steps,
    partialSlot,
    held,
    status: 'MATCHED',
  })
  if (order.bracket > 0 && !isExit(order)) wakeExits(state, order)
}

/** The entry has matched: from now on the mark triggers its bracket's exits. */
function wakeExits(state: ExchangeState, entry: OrderRow): void {
  for (const accepted of state.brackets.of(entry)) {
    const exit = state.orders.need(entry.marketId, accepted)
    if (exit.dormant) state.orders.put({ ...exit, dormant: false })
  }
}

function queueParts(
  state: ExchangeState,
  { marketId, seq }: Place,
  { batch_id, parts, as_of }: BatchCleared,
): void {
  const { lastQueueNo } = state.progress.need(marketId)
  for (let part = 1; part <= parts; part++) {
    state.actions.put({
      market_id: marketId,
      queue_no: lastQueueNo + part,
      kind: 'settle_part',
      batch_id,
      part,
      payload: null,
      touches: [],
      as_of,
      status: 'QUEUED',
      action_id: null,
      relayer: null,
      nonce: null,
      failure: null,
      changed: seq,
    })
  }
  changeProgress(state, { marketId }, { lastQueueNo: lastQueueNo + parts })
}

// ---------------------------------------------------------------------- settlement

/** Changes the status of the part's action; false if no such action may change. */
function moveAction(
  state: ExchangeState,
  { marketId, seq }: Place,
  { batch_id, part }: { readonly batch_id: number; readonly part: number },
  to: ActionState,
  from: readonly ActionState[],
): void {
  const queueNo = state.queues.ofPart(marketId, batch_id, part)
  const action = queueNo === undefined ? undefined : state.actions.get(actionKey(marketId, queueNo))
  if (action !== undefined && from.includes(action.status))
    state.actions.put({ ...action, status: to, changed: seq })
}

export function submitPart(state: ExchangeState, place: Place, row: PartSubmitted): void {
  moveAction(state, place, row, 'SUBMITTED', ['SIGNED'])
  for (const fill of fillsOf(state, place.marketId, row.batch_id, row.part))
    if (fill.status === 'MATCHED') state.fills.put({ ...fill, status: 'SUBMITTED' })
}

export function settlePart(state: ExchangeState, place: Place, row: PartSettled): void {
  const { rollback } = row
  const sign = rollback ? -1n : 1n
  const changed = new Set(row.orders.map(({ order_id }) => order_id))
  for (const fill of row.fills) {
    if (changed.has(fill.order_id)) settleOrderFill(state, place, row, fill)
    settleFunds(state, fill, sign)
    if (fill.matched) settleFill(state, place, row, fill)
  }
  for (const order of row.orders) settleStatus(state, place, order, row)
  const unmatched = new Set(row.fills.filter(({ matched }) => !matched).map(({ user_id }) => user_id))
  moveMined(state, place, row, (userId) => unmatched.has(userId))
  if (!row.fills.some(({ matched }) => matched)) return
  moveAction(
    state,
    place,
    row,
    rollback ? 'SUBMITTED' : 'MINED',
    rollback ? ['MINED'] : ['SIGNED', 'SUBMITTED'],
  )
  settleBatch(state, place, row.batch_id)
}

function settleOrderFill(
  state: ExchangeState,
  place: Place,
  { price, rollback }: PartSettled,
  { order_id, matched, steps, fee, held }: FillSettled,
): void {
  const order = findOrder(state, place, order_id)
  if (order === undefined) return
  const sign = rollback ? -1 : 1
  const filled = sign * steps
  state.orders.put({
    ...order,
    filled: (order.filled + filled) as Steps,
    filledValue: order.filledValue + BigInt(price) * BigInt(filled),
    fee: (order.fee + BigInt(sign) * BigInt(fee)) as Quote,
    settling: (matched ? order.settling - filled : order.settling) as Steps,
    held: (order.held - BigInt(sign) * BigInt(held)) as Quote,
  })
}

function settleFunds(state: ExchangeState, fill: FillSettled, sign: bigint): void {
  const fromPending = sign * BigInt(fill.from_pending)
  addFunds(state, fill.user_id, {
    free: sign * BigInt(fill.free_delta) + fromPending,
    pendingWithdrawal: -fromPending,
    reserved: -sign * BigInt(fill.held),
  })
}

/** A rollback beyond the confirmations restores fills that the state had dropped. */
function settleFill(state: ExchangeState, { marketId }: Place, row: PartSettled, settled: FillSettled): void {
  const fill = findFill(state, marketId, settled.fill_id) ?? restoredFill(state, marketId, row, settled)
  state.fills.put({ ...fill, status: row.rollback ? 'RETRYING' : 'MINED' })
}

function restoredFill(
  state: ExchangeState,
  marketId: MarketId,
  row: PartSettled,
  settled: FillSettled,
): FillRow {
  const accepted = acceptedSeq(settled.order_id)
  const [batchId, part, seq] = keyOfFill(settled.fill_id)
  return {
    marketId,
    batchId,
    part,
    place: row.fills.indexOf(settled),
    accepted,
    seq: seq as Seq,
    account: settled.user_id as UserId,
    side: settled.side,
    steps: settled.steps as Steps,
    takerSteps: settled.taker_steps as Steps,
    partialSlot: state.orders.get(marketId, accepted)?.partialSlot ?? null,
    held: BigInt(settled.held) as Quote,
    status: 'MINED',
  }
}

/** A batch is settled once all of its parts are mined. */
function settleBatch(state: ExchangeState, { marketId, seq }: Place, batchId: number): void {
  const batch = state.batches.get(batchKey(marketId, batchId))
  if (batch === undefined || batch.status === 'VOIDED') return
  const parts = Array.from({ length: batch.parts }, (_, at) => at + 1)
  const isMined = parts.every((part) => {
    const queueNo = state.queues.ofPart(marketId, batchId, part)
    return queueNo !== undefined && state.actions.get(actionKey(marketId, queueNo))?.status === 'MINED'
  })
  const status = isMined ? 'SETTLED' : 'SETTLING'
  if (status !== batch.status) state.batches.put({ ...batch, status, changed: seq })
}

/** The part's fills are final; the state drops them. */
export function confirmPart(state: ExchangeState, { marketId }: Place, row: PartConfirmed): void {
  for (const { seq, status } of fillsOf(state, marketId, row.batch_id, row.part))
    if (status === 'MINED') state.fills.remove(marketId, row.batch_id, row.part, seq)
}

// ---------------------------------------------------------------------- void

export function voidBatch(state: ExchangeState, place: Place, row: BatchVoided): void {
  const { marketId } = place
  for (const fill of row.fills) {
    voidFill(state, place, fill)
    const mined = state.positions.get(fill.user_id, marketId)
    if (mined === undefined) continue
    state.positions.put({
      ...mined,
      matchedSize: mined.size,
      matchedEntryNotional: mined.entryNotional,
      matchedFoldedMargin: mined.foldedMargin,
      matchedLeverage: mined.leverage,
    })
  }
  for (const orderId of row.restored ?? []) {
    state.orders.put({ ...needOrder(state, place, orderId), closingReason: null })
    changeNote(state, orderId, { closedBy: null })
  }
  const batch = state.batches.get(batchKey(marketId, row.batch_id))
  if (batch !== undefined) state.batches.put({ ...batch, status: 'VOIDED', changed: place.seq })
  voidActions(state, place, row)
}

/** Inverse of a match. An order that cannot return to the book ends with a separate row. */
function voidFill(state: ExchangeState, place: Place, fill: MatchedFill): void {
  const order = needOrder(state, place, fill.order_id)
  const held = BigInt(fill.held)
  state.orders.put({
    ...order,
    settling: (order.settling - fill.steps) as Steps,
    reserved: (order.reserved + held) as Quote,
    held: (order.held - held) as Quote,
    closingReason: isRemainder(order.closingReason) ? null : order.closingReason,
    partialSlot: order.filled === 0 ? null : order.partialSlot,
  })
  state.fills.remove(place.marketId, ...keyOfFill(fill.fill_id))
}

function noteUnnamed(state: ExchangeState, { marketId }: Place, { batch_id, from_part }: BatchVoided): void {
  const queueNo = state.queues.ofPart(marketId, batch_id, from_part)
  const action = queueNo === undefined ? undefined : state.actions.get(actionKey(marketId, queueNo))
  if (action?.status === 'REVERTED') state.actions.put({ ...action, is_unnamed: true })
}

function voidActions(state: ExchangeState, place: Place, row: BatchVoided): void {
  const { parts = 0 } = state.batches.get(batchKey(place.marketId, row.batch_id)) ?? {}
  for (let part = row.from_part; part <= parts; part++) {
    const status = part === row.from_part && row.is_reverted ? 'REVERTED' : 'VOIDED'
    moveAction(state, place, { batch_id: row.batch_id, part }, status, ['QUEUED', 'SIGNED', 'SUBMITTED'])
  }
  if (row.is_unnamed) noteUnnamed(state, place, row)
}
