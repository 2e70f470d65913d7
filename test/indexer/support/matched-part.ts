/** Writes what api, auction and workers have decided before a part is mined: accepted orders, a cleared batch, a submitted action. */
import type { Db } from '../../../db/client.ts'
import { matchedPosition as toMatched } from '../../../domain/auction/batch-plan.ts'
import { toOpenOrder } from '../../../domain/exchange/open-orders.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import { flatPosition } from '../../../domain/exchange/tables/accounts.ts'
import type { BatchCleared, MatchedFill, MatchedPosition } from '../../../domain/journal/batch-rows.ts'
import { type JournalRow, marketShard, type OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { isReservable } from '../../../domain/orders/open-order.ts'
import type { SignedOrder } from '../../../domain/orders/order.ts'
import { endsWith, positionClosing } from '../../../domain/orders/position-closing.ts'
import type { SettlementPart } from '../../../domain/settlement/settlement.ts'
import type { MarketId, Steps, UserId } from '../../../domain/units.ts'
import type { LocalEngine } from '../../support/local-engine.ts'

/** Reservation per step of an order. Any amount works. */
const RESERVED_PER_STEP = 10n

const RELAYER = { address: '0xrelayer', chain_id: 6343, lane: 'm1', next_nonce: 0 }

type Relayer = typeof RELAYER

export interface MatchedExchange {
  readonly db: Db
  readonly engine: LocalEngine
}

/** Accepts the part's orders and matches their fills. `txHash`: null for a part that is not signed. `relayer`: the sender of the part; each market has its own. */
export async function matchPart(
  { db, engine }: MatchedExchange,
  part: SettlementPart,
  txHash: string | null,
  relayer: Relayer = RELAYER,
): Promise<void> {
  const { state } = engine
  const { marketId } = part
  const head = state.heads.need(marketId).seq
  const orders = part.fills.filter((fill) => 'order' in fill)
  const placed = orders.map(({ order }, at) => placedRow(state, order, { seq: head + 1 + at, at: part.asOf }))
  const fills = orders.map((fill, at): MatchedFill => {
    const { order_id, user_id, side } = placed[at] as OrderPlaced
    return {
      fill_id: `${marketId}-${part.batchId}-${part.part}-${head + 1 + at}`,
      order_id,
      user_id,
      part: part.part,
      side,
      steps: fill.fill,
      taker_steps: fill.taker,
      held: `${BigInt(fill.fill) * RESERVED_PER_STEP}`,
    }
  })
  const queueNo = state.progress.need(marketId).lastQueueNo + 1
  if (txHash !== null) await storeTransaction(db, part, txHash, relayer)
  await writeRows(engine, marketId, [
    ...placed,
    clearedRow(part, fills, { ...leaveWithPositions(state, marketId, fills), head: head + placed.length }),
    ...(txHash === null ? [] : submittedRows(part, txHash, relayer, queueNo)),
  ])
}

/** A batch of its own that fills steps of one accepted order, and that no part settles. */
export async function matchOrder(engine: LocalEngine, orderId: string, steps: number): Promise<void> {
  const { state } = engine
  const [marketId, accepted] = orderId.split('-').map(Number) as [MarketId, number]
  const order = state.orders.need(marketId, accepted)
  const batch_id = state.progress.need(marketId).lastBatchId + 1_000
  const fill = {
    fill_id: `${marketId}-${batch_id}-1-${order.seq}`,
    order_id: orderId,
    user_id: order.account,
    part: 1,
    side: order.side,
    steps,
    taker_steps: 0,
    held: `${(order.reserved * BigInt(steps)) / BigInt(order.quantity)}`,
  }
  const cleared: BatchCleared = {
    ...NO_TERMS,
    batch_id,
    as_of: 1,
    price: 1,
    parts: 1,
    fills: [fill],
    closing: [],
  }
  await writeRows(engine, marketId, [cleared])
}

export function writeRows(engine: LocalEngine, marketId: number, rows: readonly JournalRow[]): Promise<void> {
  return engine.write(rows.map((row) => ({ shard: marketShard(marketId), row })))
}

function placedRow(
  state: ExchangeState,
  order: SignedOrder,
  { seq, at }: { readonly seq: number; readonly at: number },
): OrderPlaced {
  return {
    kind: 'order_placed',
    order_id: `${order.marketId}-${seq}`,
    user_id: state.userIds.get(order.maker) as UserId,
    maker: order.maker,
    signer: order.signer,
    hash: order.hash,
    salt: Number(order.salt),
    side: order.side,
    type: order.type,
    price: order.price,
    quantity: order.quantity,
    trigger: 0,
    leverage: order.leverage,
    reduce_only: false,
    expiration: order.expiration,
    alive_until: order.expiration,
    status: 'OPEN',
    accepted_at: at,
    openable: 0,
    reserved: `${BigInt(order.quantity) * RESERVED_PER_STEP}`,
    reserved_price: 1,
    signature: order.signature,
  }
}

interface Left {
  readonly closing: BatchCleared['closing']
  readonly matched: readonly MatchedPosition[]
}

/** The matched sizes, and the reduce-only orders that leave the book because their position closes or turns. */
function leaveWithPositions(state: ExchangeState, marketId: MarketId, fills: readonly MatchedFill[]): Left {
  const closing: BatchCleared['closing'][number][] = []
  const matched: MatchedPosition[] = []
  for (const [user, own] of Map.groupBy(fills, ({ user_id }) => user_id)) {
    const userId = user as UserId
    const before = state.positions.get(userId, marketId) ?? flatPosition(userId, marketId)
    const size = before.matchedSize
    const closed = positionClosing(
      size,
      own.map((fill) => ({ ...fill, fill: fill.steps as Steps })),
    )
    const moved = own.reduce((sum, { side, steps }) => sum + (side === 'LONG' ? steps : -steps), 0)
    const after = {
      size: (size + moved) as Steps,
      entryNotional: before.matchedEntryNotional,
      foldedMargin: before.matchedFoldedMargin,
      leverage: 5,
    }
    matched.push(toMatched(userId, after))
    if (closed === null) continue
    for (const row of state.orderIndex.liveOf(marketId, userId)) {
      const order = toOpenOrder(state, row)
      if (!endsWith(order, closed.side) || !isReservable(order)) continue
      closing.push({ order_id: order.orderId, reason: 'POSITION_CLOSED', closed_by: closed.fill.fill_id })
    }
  }
  return { closing, matched }
}

/** Terms that no assertion reads. */
const NO_TERMS = {
  kind: 'batch_cleared',
  oracle_price: '1',
  oracle_at: 1,
  lo: 1,
  hi: 2,
  volume: 1,
  demand: 1,
  supply: 1,
  rule: 'volume',
  head: 0,
  maker_fee: '0',
  taker_fee: '0',
  oracle_signatures: '0x',
  matched: [],
} as const

function clearedRow(
  part: SettlementPart,
  fills: readonly MatchedFill[],
  { closing, matched, head }: Left & { readonly head: number },
): BatchCleared {
  return {
    ...NO_TERMS,
    batch_id: part.batchId,
    as_of: part.asOf,
    oracle_price: part.oracle.price.toString(),
    oracle_at: part.oracle.observedAt,
    price: part.price,
    parts: part.parts,
    fills,
    head,
    maker_fee: part.makerFee.toString(),
    taker_fee: part.takerFee.toString(),
    oracle_signatures: part.oracle.signatures,
    matched,
    closing,
  }
}

function submittedRows(
  { actionId, batchId, part, asOf }: SettlementPart,
  txHash: string,
  relayer: Relayer,
  queueNo: number,
): JournalRow[] {
  const numbers = { action_id: actionId, relayer: relayer.address, nonce: actionId }
  return [
    { kind: 'action_numbered', queue_no: queueNo, ...numbers },
    { kind: 'action_signed', queue_no: queueNo, tx_hash: txHash, at: asOf },
    { kind: 'part_submitted', batch_id: batchId, part, action_id: actionId, tx_hash: txHash, at: asOf },
  ]
}

/** The worker's own tables have the transaction. */
async function storeTransaction(
  db: Db,
  { actionId, asOf }: SettlementPart,
  txHash: string,
  relayer: Relayer,
): Promise<void> {
  await db
    .insertInto('relayers')
    .values(relayer)
    .onConflict((on) => on.doNothing())
    .execute()
  await db
    .insertInto('relayer_transactions')
    .values({
      tx_hash: txHash,
      chain_id: relayer.chain_id,
      relayer: relayer.address,
      nonce: actionId,
      purpose: 'settle_part',
      raw: '0x',
      status: 'BROADCAST',
      error: null,
      signed_at: asOf,
      broadcast_at: asOf,
      block: null,
    })
    .execute()
}
