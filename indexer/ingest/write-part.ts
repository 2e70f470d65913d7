/** Reads what a mined part applies to and writes what it changes. The caller holds the locks of the market's shard and of the accounts. */
import { sql } from 'kysely'
import { changeLedger, type LedgerChange } from '../../db/accounts.ts'
import { settleActions } from '../../db/actions.ts'
import { loadTerms, settleBatches } from '../../db/batches.ts'
import type { Tx } from '../../db/client.ts'
import { settleFills } from '../../db/fills.ts'
import { addDeficit } from '../../db/market-endings.ts'
import { settleOrders } from '../../db/orders.ts'
import { loadPositions, minedPosition, movePositions } from '../../db/positions.ts'
import { anyOf } from '../../db/values.ts'
import type { PartSettled } from '../../domain/journal/batch-rows.ts'
import type { PositionsMoved } from '../../domain/journal/journal-row.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { PartExpectation } from '../../domain/settlement/receipt.ts'
import type { LedgerEntry, PartState, UnsettledFill } from '../../domain/settlement/settle-part.ts'
import type { BatchSettled } from '../../domain/settlement/settlement.ts'
import type { SettlingOrder } from '../../domain/settlement/settling-order.ts'
import type { Address, UserId } from '../../domain/units.ts'
import { loadLeaving, loadOrders } from './settling-orders.ts'

/** Without what depends on the new positions. */
type LoadedPart = Omit<PartState, 'reduceOnly' | 'moved'>

export async function loadPart(
  tx: Tx,
  marketId: number,
  settled: BatchSettled,
  users: ReadonlyMap<Address, number>,
): Promise<LoadedPart> {
  const fills = await waitingFills(tx, marketId, settled)
  return {
    users,
    fills,
    ledger: await loadLedger(tx, [...users.values()]),
    positions: await loadMinedPositions(tx, marketId, users),
    orders: await ordersOf(tx, marketId, settled, fills),
    leaving: await loadLeaving(tx, marketId, [...users.values()], fills),
  }
}

/** The fills that wait for this part. */
async function waitingFills(
  tx: Tx,
  marketId: number,
  { batchId, part }: Pick<BatchSettled, 'batchId' | 'part'>,
): Promise<UnsettledFill[]> {
  const rows = await tx
    .selectFrom('fills')
    .innerJoin('orders', 'orders.order_id', 'fills.order_id')
    .select([
      'fills.fill_id',
      'fills.order_id',
      'fills.side',
      'fills.steps',
      'fills.taker_steps',
      'fills.held',
    ])
    .select(['orders.maker', 'orders.salt', 'orders.forced'])
    .where('fills.market_id', '=', marketId)
    .where('fills.batch_id', '=', batchId)
    .where('fills.part', '=', part)
    .where('fills.status', 'in', ['MATCHED', 'SUBMITTED', 'RETRYING'])
    .orderBy('fills.place')
    .execute()
  return rows.map(toUnsettledFill)
}

interface FillRow {
  readonly fill_id: string
  readonly order_id: string
  readonly maker: string
  readonly salt: number
  readonly forced: boolean
  readonly side: UnsettledFill['side']
  readonly steps: UnsettledFill['steps']
  readonly taker_steps: UnsettledFill['takerSteps']
  readonly held: UnsettledFill['held']
}

export const toUnsettledFill = (row: FillRow): UnsettledFill => ({
  fillId: row.fill_id,
  orderId: row.order_id,
  maker: row.maker as Address,
  salt: BigInt(row.salt),
  isForced: row.forced,
  side: row.side,
  steps: row.steps,
  takerSteps: row.taker_steps,
  held: row.held,
})

export async function loadLedger(tx: Tx, userIds: readonly number[]): Promise<Map<number, LedgerEntry>> {
  const rows = await tx
    .selectFrom('accounts')
    .selectAll()
    .where('user_id', '=', anyOf('bigint', userIds))
    .execute()
  return new Map(rows.map((row) => [row.user_id, { free: row.free, pending: row.pending_withdrawal }]))
}

/** Mined positions, by address. */
export async function loadMinedPositions(
  tx: Tx,
  marketId: number,
  users: ReadonlyMap<Address, number>,
): Promise<Map<Address, Position>> {
  const byUser = await loadPositions(tx, marketId, new Set(users.values()), minedPosition)
  return new Map(
    [...users].flatMap(([maker, userId]): [Address, Position][] => {
      const position = byUser.get(userId as UserId)
      return position === undefined ? [] : [[maker, position]]
    }),
  )
}

/** The orders of the part by maker and salt; of forced orders those that wait for the part. */
async function ordersOf(
  tx: Tx,
  marketId: number,
  settled: BatchSettled,
  waiting: readonly UnsettledFill[],
): Promise<SettlingOrder[]> {
  const fills = settled.fills.filter(({ isForced }) => !isForced)
  // One look-up per order, whatever the planner assumes about the table: a plan made while it is small reads all orders of the market.
  const { rows } = await sql<{ order_id: string }>`
    select o.order_id
    from unnest(${fills.map(({ maker }) => maker)}::text[], ${fills.map(({ salt }) => salt.toString())}::bigint[]) as settled (maker, salt)
    cross join lateral (
      select order_id from orders
      where market_id = ${marketId} and maker = settled.maker and salt = settled.salt and not forced
      offset 0
    ) o
  `.execute(tx)
  const forced = waiting.filter(({ isForced }) => isForced)
  return loadOrders(tx, [...rows.map(({ order_id }) => order_id), ...forced.map(({ orderId }) => orderId)])
}

/** What the exchange has sent for the part; null if the write side does not have it. */
export async function expectationOf(
  tx: Tx,
  marketId: number,
  { batchId, part }: Pick<BatchSettled, 'batchId' | 'part'>,
  fills: readonly UnsettledFill[],
): Promise<PartExpectation | null> {
  if (fills.length === 0) return null
  const { price, parts, asOf } = await loadTerms(tx, marketId, batchId)
  const action = await tx
    .selectFrom('actions')
    .select(['action_id', 'as_of'])
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .where('part', '=', part)
    .orderBy('queue_no', 'desc')
    .executeTakeFirst()
  const terms = { batchId, part, parts, price, asOf, actionId: action?.action_id ?? null }
  return { kind: 'part', ...terms, fills }
}

/** Writes what the row states. `orders`: the orders as they are after it. */
export async function writePart(
  tx: Tx,
  marketId: number,
  row: PartSettled,
  orders: readonly SettlingOrder[],
): Promise<void> {
  await movePositions(tx, marketId, row, unmatchedAccounts(row))
  await changeLedger(tx, ledgerChanges(row))
  await settleOrders(tx, orders, () => row.at)
  const fillIds = row.fills.filter(({ matched }) => matched).map(({ fill_id }) => fill_id)
  if (fillIds.length === 0) return
  await settleFills(tx, fillIds, row.rollback ? 'RETRYING' : 'MINED')
  const part = { market_id: marketId, batch_id: row.batch_id, part: row.part }
  await settleActions(tx, [part], row)
  await settleBatches(tx, [part])
}

/**
 * Writes positions that moved outside batches. No batch had matched the move, so the matched positions move along. `orders`: the
 * reduce-only orders as they are after it.
 */
export async function writeMove(
  tx: Tx,
  marketId: number,
  row: PositionsMoved,
  orders: readonly SettlingOrder[],
): Promise<void> {
  await settleOrders(tx, orders, () => row.at)
  await movePositions(tx, marketId, row, new Set(row.positions.map(({ user_id }) => user_id)))
  const changes = row.balances.map(({ user_id, free_delta }) => ({
    user_id,
    free: (signOf(row) * BigInt(free_delta)).toString(),
  }))
  await changeLedger(tx, changes)
  if (row.deficit !== undefined) await addDeficit(tx, marketId, signOf(row) * BigInt(row.deficit))
}

const signOf = (row: { readonly rollback: boolean }): bigint => (row.rollback ? -1n : 1n)

/** Accounts with a fill that no batch here had matched: their matched position has not moved yet, and moves with the mined one. */
const unmatchedAccounts = ({ fills }: PartSettled): Set<number> =>
  new Set(fills.filter(({ matched }) => !matched).map(({ user_id }) => user_id))

export function ledgerChanges(row: PartSettled): LedgerChange[] {
  const signed = (amount: bigint): string => (signOf(row) * amount).toString()
  return [
    ...row.fills.map((fill) => ({
      user_id: fill.user_id,
      free: signed(BigInt(fill.free_delta) + BigInt(fill.from_pending)),
      pending_withdrawal: signed(-BigInt(fill.from_pending)),
      reserved: signed(-BigInt(fill.held)),
    })),
    ...row.orders.map(({ user_id, reserved_delta }) => ({
      user_id,
      reserved: signed(BigInt(reserved_delta)),
    })),
  ]
}
