/** `read.book_levels`: one row per market, side and price, with the steps of its open limit orders that can execute. */
import { type BookOrder, executableSteps, isCovered } from '../../../domain/orders/executable.ts'
import type { Side } from '../../../domain/orders/order.ts'
import type { Seq, Steps, Ticks } from '../../../domain/units.ts'
import { tableOf } from '../read-table.ts'
import type { ReadOrder } from './orders.ts'
import type { ReadPosition } from './positions.ts'

export interface LevelDelta {
  readonly market_id: number
  readonly side: Side
  readonly price: number
  readonly quantity: number
  readonly order_count: number
}

export const LEVELS = tableOf<LevelDelta>({
  table: 'read.book_levels',
  key: ['market_id', 'side', 'price'],
  columns: {
    market_id: 'integer',
    side: 'text',
    price: 'bigint',
    quantity: 'bigint',
    order_count: 'integer',
  },
})

/** The clause that deletes levels without orders, with the keys of its rows; `LEVELS.add` returns the levels that are left. */
export const EMPTIED_LEVELS = '"emptied levels"'

/** The fields of an order that decide what it adds to its level. */
export type LevelOrder = Pick<
  ReadOrder,
  'order_id' | 'seq' | 'side' | 'price' | 'quantity' | 'filled' | 'settling' | 'openable' | 'reduce_only'
>

/** An account whose position decides how much of its orders can execute, as it was before the chunk. */
export interface PositionedAccount {
  readonly user_id: number
  /** The matched position: mined and pending. */
  readonly matched: number
  /** Its open limit orders on the sides that reduce the position before or after the chunk. */
  readonly orders: readonly LevelOrder[]
}

/** A chunk's changes of orders and positions in one market. */
export interface LevelInput {
  /** Orders before the chunk, by id; those that it places are absent. */
  readonly before: ReadonlyMap<string, ReadOrder>
  /** The orders that it changes or places, and the positions that it changes. */
  readonly orders: readonly ReadOrder[]
  readonly positions: readonly ReadPosition[]
}

/** The accounts that a chunk touches. */
export interface TouchedAccounts {
  readonly touched: ReadonlySet<number>
  /** Accounts whose position the chunk changes. */
  readonly moved: ReadonlySet<number>
  /** Accounts with a changed order that its reservation no longer covers. */
  readonly uncovered: ReadonlySet<number>
}

export function touchedAccounts({ orders, positions }: LevelInput): TouchedAccounts {
  const usersOf = (rows: readonly { readonly user_id: number }[]) =>
    new Set(rows.map(({ user_id }) => user_id))
  return {
    touched: usersOf([...orders, ...positions]),
    moved: usersOf(positions),
    uncovered: usersOf(orders.filter((order) => isResting(order) && !isCovered(bookOrder(order)))),
  }
}

/** An account that may be positioned, and whether the chunk moves its position. */
export interface PositionedKey {
  readonly userId: number
  readonly isMoved: boolean
}

/** The touched accounts that have an order which its reservation does not cover, before (`uncovered`) or after the chunk. */
export function positionedAccounts(
  { touched, moved, uncovered: after }: TouchedAccounts,
  uncovered: ReadonlySet<number>,
): PositionedKey[] {
  const users = new Set([...after, ...[...uncovered].filter((userId) => touched.has(userId))])
  return [...users].map((userId) => ({ userId, isMoved: moved.has(userId) }))
}

/**
 * Changes of the levels. `accounts`: touched accounts with a position; orders of other accounts execute whole. A level
 * depends only on orders and positions, not on chunk sizes.
 */
export function levelDeltas(
  marketId: number,
  { before, orders, positions }: LevelInput,
  accounts: readonly PositionedAccount[],
): LevelDelta[] {
  const previousOf = (changed: readonly ReadOrder[]): ReadOrder[] =>
    changed.map(({ order_id }) => before.get(order_id)).filter((order) => order !== undefined)
  const positioned = new Set(accounts.map(({ user_id }) => user_id))
  const others = orders.filter(({ user_id }) => !positioned.has(user_id))
  const deltas = [...wholeOrders(marketId, previousOf(others), -1), ...wholeOrders(marketId, others, 1)]
  const changes = Map.groupBy(orders, ({ user_id }) => user_id)
  const moved = new Map(positions.map((position) => [position.user_id, position.size + position.pending]))
  for (const { user_id, matched, orders: standing } of accounts) {
    const changed = changes.get(user_id) ?? []
    const ids = new Set(changed.map(({ order_id }) => order_id))
    const unchanged = standing.filter(({ order_id }) => !ids.has(order_id))
    const old = [...unchanged, ...previousOf(changed).filter(isResting)]
    const current = [...unchanged, ...changed.filter(isResting)]
    deltas.push(...executableOrders(marketId, old, matched, -1))
    deltas.push(...executableOrders(marketId, current, moved.get(user_id) ?? matched, 1))
  }
  return sumLevels(deltas)
}

const wholeOrders = (marketId: number, orders: readonly ReadOrder[], sign: 1 | -1): LevelDelta[] =>
  orders.filter(isResting).map((order) => levelDelta(marketId, order, remainingOf(order), sign))

function executableOrders(
  marketId: number,
  orders: readonly LevelOrder[],
  matched: number,
  sign: 1 | -1,
): LevelDelta[] {
  const steps = executableSteps(matched as Steps, orders.map(bookOrder))
  return orders.flatMap((order) => {
    const quantity = steps.get(order.seq as Seq) ?? 0
    return quantity === 0 ? [] : [levelDelta(marketId, order, quantity, sign)]
  })
}

const levelDelta = (
  market_id: number,
  { side, price }: LevelOrder,
  steps: number,
  sign: 1 | -1,
): LevelDelta => ({ market_id, side, price, quantity: sign * steps, order_count: sign })

const remainingOf = ({ quantity, filled, settling }: LevelOrder): Steps =>
  (quantity - filled - settling) as Steps

/** Whether a limit order is in the book with unmatched steps. */
const isResting = (order: ReadOrder): boolean =>
  order.status === 'OPEN' && order.status_reason === null && order.price > 0 && remainingOf(order) > 0

const bookOrder = (order: LevelOrder): BookOrder => ({
  seq: order.seq as Seq,
  side: order.side,
  limit: order.price as Ticks,
  remaining: remainingOf(order),
  reduceOnly: order.reduce_only,
  openable: order.openable as Steps,
})

/** One delta per level. Levels whose deltas sum to zero are left out. */
function sumLevels(deltas: Iterable<LevelDelta>): LevelDelta[] {
  const sums = new Map<string, LevelDelta>()
  for (const delta of deltas) {
    const key = `${delta.market_id}-${delta.side}-${delta.price}`
    const sum = sums.get(key)
    sums.set(key, sum === undefined ? delta : add(sum, delta))
  }
  return [...sums.values()].filter(({ quantity, order_count }) => quantity !== 0 || order_count !== 0)
}

const add = (a: LevelDelta, b: LevelDelta): LevelDelta => ({
  ...a,
  quantity: a.quantity + b.quantity,
  order_count: a.order_count + b.order_count,
})
