/**
 * Applies facts that change positions outside batches: inheritance by the backstop, deleveraging, adjustments by their owners, and the
 * deficits and claims of a wind-down. The new positions follow from the event by the rules of `domain/`; if the rules do not explain the event, the positions
 * are read from the contract and the caller records a mismatch.
 */

import type { Tx } from '../../db/client.ts'
import { loadMinedFunding } from '../../db/funding.ts'
import { movedAccounts, type PositionMoveFact } from '../../domain/chain/fact-accounts.ts'
import { evidenceOf, movedPositions, moveRow, type Positions } from '../../domain/chain/position-move.ts'
import type { SettledOrder } from '../../domain/journal/batch-rows.ts'
import { marketShard, type PositionsMoved } from '../../domain/journal/journal-row.ts'
import type { FailureKind } from '../../domain/settlement/receipt.ts'
import type { MinedAt } from '../../domain/settlement/settle-part.ts'
import {
  closeWithMove,
  type MovedSize,
  reopenWithPosition,
  type SettlingOrder,
  settledOrder,
} from '../../domain/settlement/settling-order.ts'
import type { Address } from '../../domain/units.ts'
import type { Chain } from '../ports.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'
import { loadMoved, loadOrders, loadVoided } from './settling-orders.ts'
import { loadMinedPositions, writeMove } from './write-part.ts'

interface MoveContext {
  readonly tx: Tx
  readonly chain: Pick<Chain, 'position'>
  readonly shards: LockedShards
  readonly users: ReadonlyMap<Address, number>
}

export interface AppliedMove {
  readonly place: RowPlace
  /** Set if the rules of `domain/` do not explain the event. */
  readonly failure: FailureKind | null
}

/** The caller has locked the market's shard and the account rows. */
export async function applyMove(
  { tx, chain, shards, users }: MoveContext,
  fact: PositionMoveFact,
  mined: MinedAt,
): Promise<AppliedMove> {
  const { marketId, trader } = fact.spec
  const accounts = movedAccounts(fact)
  const known = new Map([...users].filter(([address]) => accounts.includes(address)))
  const before = await loadMinedPositions(tx, marketId, known)
  const explained = movedPositions(fact, before)
  const after = explained ?? (await positionsOnChain(chain, trader, accounts, mined.block))
  const idOf = (account: Address) => known.get(account) as number
  const moves = [...after].map(([account, position]) => [idOf(account), position] as const)
  const time = { part: null, asOf: evidenceOf(fact).as_of ?? null }
  const { moved, reduceOnly } = await loadMoved(tx, marketId, new Map(moves), time)
  const closed = reduceOnly.flatMap((order) => {
    const ended = closeWithMove(order, moved.get(order.userId) as MovedSize)
    return ended === null ? [] : [ended.order]
  })
  const { index: lastIndex } = await loadMinedFunding(tx, marketId)
  const row = moveRow(fact, { before, after, idOf, closed, lastIndex, mined })
  await writeMove(tx, marketId, row, closed)
  const place = shards.append(marketShard(marketId), row)
  return { place, failure: explained === null ? 'trade_events_without_position_updates' : null }
}

/** The row that takes a move back, and the reduce-only orders as they were before it. */
export async function rollBackMove(
  tx: Tx,
  row: PositionsMoved,
): Promise<{ row: PositionsMoved; orders: SettlingOrder[] }> {
  const closed = new Map(row.orders?.map((order) => [order.order_id, order]))
  const orders = await loadOrders(tx, [...closed.keys()])
  const voided = await loadVoided(
    tx,
    orders.flatMap(({ closedBy }) => closedBy ?? []),
  )
  const restored = orders.map((order) => {
    // A void returns live orders to the book, but not those that the move had ended.
    const closedBy = order.closedBy === null || voided.has(order.closedBy) ? null : order.closedBy
    return reopenWithPosition({ ...order, closedBy }, closed.get(order.orderId) as SettledOrder)
  })
  const statuses = restored.map((order) => settledOrder(order, 0n))
  return { row: { ...row, rollback: true, orders: statuses }, orders: restored }
}

async function positionsOnChain(
  chain: Pick<Chain, 'position'>,
  trader: Address,
  accounts: readonly Address[],
  block: number,
): Promise<Positions> {
  const positions = accounts.map(
    async (account) => [account, await chain.position(trader, account, block)] as const,
  )
  return new Map(await Promise.all(positions))
}
