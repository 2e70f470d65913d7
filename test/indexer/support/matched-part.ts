/** Writes what api and keeper write before a part is mined: accepted orders, a cleared batch, a submitted action. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../../db/client.ts'
import { appendRows, lockShard } from '../../../db/journal.ts'
import { loadLiveOrders, updateOrders } from '../../../db/orders.ts'
import { loadPositions, matchedPosition, setMatchedPositions } from '../../../db/positions.ts'
import { findUsers } from '../../../db/users.ts'
import { matchedPosition as toMatched } from '../../../domain/auction/batch-plan.ts'
import type { MatchedFill, MatchedPosition } from '../../../domain/journal/batch-rows.ts'
import { type JournalRow, marketShard } from '../../../domain/journal/journal-row.ts'
import { isReservable } from '../../../domain/orders/open-order.ts'
import { endsWith, leaveWithPosition, positionClosing } from '../../../domain/orders/position-closing.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import type { SettlementPart } from '../../../domain/settlement/settlement.ts'
import type { Steps, UserId } from '../../../domain/units.ts'

/** Reservation per step of an order. Any amount works. */
const RESERVED_PER_STEP = 10n

const RELAYER = { address: '0xrelayer', chain_id: 6343, lane: 'm1', next_nonce: 0 }

type Relayer = typeof RELAYER

/** Accepts the part's orders and matches their fills. `relayer`: who has sent it; each market has its own. */
export async function matchPart(
  db: Db,
  part: SettlementPart,
  txHash: string,
  relayer: Relayer = RELAYER,
): Promise<void> {
  const orders = part.fills.filter((fill) => 'order' in fill)
  await db.transaction().execute(async (tx) => {
    const head = await lockShard(tx, marketShard(part.marketId))
    const users = await findUsers(
      tx,
      orders.map(({ order }) => order.maker),
    )
    const rows: JournalRow[] = []
    const fills: MatchedFill[] = []
    for (const [place, fill] of orders.entries()) {
      const { order, taker } = fill
      const seq = head.head + 1 + rows.length
      const user_id = users.get(order.maker) as number
      const order_id = `${part.marketId}-${seq}`
      const held = BigInt(fill.fill) * RESERVED_PER_STEP
      const reserved = BigInt(order.quantity) * RESERVED_PER_STEP
      const same = { order_id, user_id, maker: order.maker, signer: order.signer, hash: order.hash }
      const grid = {
        side: order.side,
        type: order.type,
        price: order.price,
        quantity: order.quantity,
        trigger: 0,
      }
      const terms = {
        leverage: order.leverage,
        reduce_only: false,
        expiration: order.expiration,
        alive_until: order.expiration,
        reserved_price: 1,
      }
      const accepted = {
        ...same,
        ...grid,
        ...terms,
        salt: Number(order.salt),
        accepted_at: part.asOf,
        openable: 0,
      }
      rows.push({ kind: 'order_placed', ...accepted, status: 'OPEN', reserved: `${reserved}` })
      const state = { status: 'OPEN', settling: fill.fill, held, reserved: reserved - held } as const
      await tx
        .insertInto('orders')
        .values({ ...accepted, ...state, market_id: part.marketId, seq, signature: order.signature })
        .execute()
      await tx
        .updateTable('accounts')
        .set({ reserved: sql`reserved + ${reserved}::numeric` })
        .where('user_id', '=', user_id)
        .execute()
      const fill_id = `${part.marketId}-${part.batchId}-${part.part}-${seq}`
      const matched = { fill_id, order_id, user_id, part: part.part, side: order.side, steps: fill.fill }
      fills.push({ ...matched, taker_steps: taker, held: `${held}` })
      await tx
        .insertInto('fills')
        .values({
          ...matched,
          market_id: part.marketId,
          batch_id: part.batchId,
          place,
          taker_steps: taker,
          held,
          status: 'SUBMITTED',
        })
        .execute()
    }
    const { left, matched } = await leaveWithPositions(tx, part.marketId, fills)
    rows.push(clearedRow(part, fills, { left, matched, head: head.head + rows.length }))
    const queueNo = await insertBatch(tx, part, txHash, relayer)
    rows.push(...submittedRows(part, txHash, relayer, queueNo))
    await appendRows(tx, head, rows)
  })
}

interface Left {
  /** Orders that leave the book, with the fill that closes their position. */
  readonly left: readonly { readonly orderId: string; readonly closedBy: string }[]
  readonly matched: readonly MatchedPosition[]
}

/** Moves the matched sizes, and takes the reduce-only orders out of the book whose position closes or turns. */
async function leaveWithPositions(tx: Tx, marketId: number, fills: readonly MatchedFill[]): Promise<Left> {
  const left: { orderId: string; closedBy: string }[] = []
  const matched: MatchedPosition[] = []
  for (const [userId, own] of Map.groupBy(fills, ({ user_id }) => user_id)) {
    const positions = await loadPositions(tx, marketId, new Set([userId]), matchedPosition)
    const before = positions.get(userId as UserId) ?? FLAT
    const sized = own.map((fill) => ({ ...fill, fill: fill.steps as Steps }))
    const closing = positionClosing(before.size, sized)
    const moved = own.reduce((sum, { side, steps }) => sum + (side === 'LONG' ? steps : -steps), 0)
    const after = { ...before, size: (before.size + moved) as Steps, leverage: 5 }
    await setMatchedPositions(tx, marketId, new Map([[userId as UserId, after]]))
    matched.push(toMatched(userId as UserId, after))
    if (closing === null) continue
    for (const order of await loadLiveOrders(tx, marketId, new Set([userId as UserId]))) {
      if (!endsWith(order, closing.side) || !isReservable(order)) continue
      await updateOrders(tx, [leaveWithPosition(order, closing.fill.fill_id)])
      left.push({ orderId: order.orderId, closedBy: closing.fill.fill_id })
    }
  }
  return { left, matched }
}

function clearedRow(
  part: SettlementPart,
  fills: readonly MatchedFill[],
  { left, matched, head }: Left & { readonly head: number },
): JournalRow {
  return {
    kind: 'batch_cleared',
    ...{ batch_id: part.batchId, as_of: part.asOf, oracle_price: part.oracle.price.toString() },
    ...{
      oracle_at: part.oracle.observedAt,
      lo: 1,
      hi: 2,
      price: part.price,
      volume: 1,
      demand: 1,
      supply: 1,
    },
    ...{ rule: 'volume', parts: part.parts, fills },
    head,
    maker_fee: part.makerFee.toString(),
    taker_fee: part.takerFee.toString(),
    oracle_signatures: part.oracle.signatures,
    matched,
    closing: left.map(({ orderId, closedBy }) => ({
      order_id: orderId,
      reason: 'POSITION_CLOSED',
      closed_by: closedBy,
    })),
  }
}

function submittedRows(
  part: SettlementPart,
  txHash: string,
  relayer: Relayer,
  queueNo: number,
): JournalRow[] {
  const { actionId, batchId, asOf } = part
  const numbers = { action_id: actionId, relayer: relayer.address, nonce: actionId }
  return [
    { kind: 'action_numbered', queue_no: queueNo, ...numbers },
    { kind: 'action_signed', queue_no: queueNo, tx_hash: txHash, at: asOf },
    {
      kind: 'part_submitted',
      batch_id: batchId,
      part: part.part,
      action_id: actionId,
      tx_hash: txHash,
      at: asOf,
    },
  ]
}

async function insertBatch(tx: Tx, part: SettlementPart, txHash: string, relayer: Relayer): Promise<number> {
  const { marketId: market_id, batchId: batch_id, asOf: as_of, actionId: action_id } = part
  await tx
    .insertInto('batches')
    .values({
      ...{ market_id, batch_id, as_of, price: part.price, lo: 1, hi: 2, volume: 1, demand: 1, supply: 1 },
      ...{
        rule: 'volume',
        parts: part.parts,
        oracle_price: part.oracle.price,
        oracle_at: part.oracle.observedAt,
      },
      ...{ oracle_signatures: part.oracle.signatures, maker_fee: part.makerFee, taker_fee: part.takerFee },
      ...{ inputs: Buffer.from('{}'), status: 'SETTLING', created_at: as_of },
    })
    .execute()
  await tx
    .insertInto('relayers')
    .values(relayer)
    .onConflict((on) => on.doNothing())
    .execute()
  const sent = { relayer: relayer.address, nonce: action_id }
  const { count } = await tx
    .selectFrom('actions')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('market_id', '=', market_id)
    .executeTakeFirstOrThrow()
  const queue_no = Number(count) + 1
  await tx
    .insertInto('actions')
    .values({
      market_id,
      queue_no,
      kind: 'settle_part',
      batch_id,
      part: part.part,
      as_of,
      action_id,
      status: 'SUBMITTED',
      ...sent,
      created_at: as_of,
    })
    .execute()
  await tx
    .insertInto('relayer_transactions')
    .values({
      ...{
        tx_hash: txHash,
        chain_id: relayer.chain_id,
        ...sent,
        purpose: 'settle_part',
        raw: '0x',
        status: 'BROADCAST',
      },
      ...{ error: null, signed_at: as_of, broadcast_at: as_of, block: null },
    })
    .execute()
  return queue_no
}
