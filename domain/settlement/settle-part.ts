/**
 * Settles a mined part in the write side, and rolls it back. Amounts come from the event; stored fills only identify
 * which of its fills were matched here.
 */

import { InvariantError, invariant } from '../invariant.ts'
import type { FillSettled, PartSettled, PositionChange } from '../journal/batch-rows.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import { isTerminal, transition } from '../orders/order-state.ts'
import { applyFill, FLAT, type Position } from '../positions/position.ts'
import type { Address, Price, Steps } from '../units.ts'
import type { BatchSettled, SettledFill } from './settlement.ts'
import { applySettled } from './settlement-replay.ts'
import {
  type ClosedOrder,
  closeWithMove,
  closeWithPosition,
  type MovedSize,
  reopenWithPosition,
  type SettlingOrder,
  settledOrder,
} from './settling-order.ts'

/** A matched fill that is not mined yet. */
export interface UnsettledFill {
  readonly fillId: string
  readonly orderId: string
  readonly maker: Address
  readonly salt: bigint
  readonly isForced: boolean
  readonly side: Side
  readonly steps: number
  readonly takerSteps: number
  readonly held: bigint
}

export interface LedgerEntry {
  readonly free: bigint
  readonly pending: bigint
}

export interface PartState {
  readonly users: ReadonlyMap<Address, number>
  readonly ledger: ReadonlyMap<number, LedgerEntry>
  readonly positions: ReadonlyMap<Address, Position>
  readonly fills: readonly UnsettledFill[]
  /** Orders of the fills, and other stored orders that the part settles. */
  readonly orders: readonly SettlingOrder[]
  /** Orders that left the book because a fill of this part closed their position. */
  readonly leaving: readonly SettlingOrder[]
  /** Live reduce-only orders of the accounts in `moved`, accepted before the batch. */
  readonly reduceOnly: readonly SettlingOrder[]
  /** Accounts by user with fills that no batch had matched here. */
  readonly moved: ReadonlyMap<number, MovedSize>
}

/** Block and time at which the part was mined. */
export interface MinedAt {
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

export interface Movement {
  /** New position of every account in the part. */
  readonly positions: ReadonlyMap<Address, Position>
  /** Realized profit or loss of each fill, in fill order. */
  readonly realised: readonly bigint[]
}

/** Derives the new positions from the event. Null if the rules of `domain/` do not explain the event. */
export function movementOf(
  spec: MarketSpec,
  settled: BatchSettled,
  before: ReadonlyMap<Address, Position>,
): Movement | null {
  const positions = new Map<Address, Position>()
  const realised: bigint[] = []
  try {
    for (const fill of settled.fills) {
      const at = positions.get(fill.maker) ?? before.get(fill.maker) ?? FLAT
      realised.push(realisedBy(spec, settled, fill, at))
      const after = applySettled(new Map([[fill.maker, at]]), { ...settled, fills: [fill] }, spec)
      positions.set(fill.maker, after.get(fill.maker) ?? at)
    }
    return { positions, realised }
  } catch (error) {
    if (error instanceof InvariantError) return null
    throw error
  }
}

/** The result does not depend on the margin basis of opening steps, which the event does not contain. */
function realisedBy(spec: MarketSpec, settled: BatchSettled, fill: SettledFill, at: Position): bigint {
  const { side, leverage } = fill
  const share = { side, price: settled.price, steps: fill.fill, takerSteps: fill.taker, leverage }
  const verdict = applyFill(spec, at, { ...share, basis: 0n as Price }, settled)
  return verdict.ok ? verdict.value.realised : 0n
}

/**
 * Makers with a fill that no batch had matched here. Their matched positions move with the mined positions.
 */
export function unmatchedMakers(settled: BatchSettled, fills: readonly UnsettledFill[]): Set<Address> {
  const waiting = new Map(fills.map((fill) => [keyOf(fill), fill]))
  const unmatched = settled.fills.filter((fill) => matchOf(waiting, fill) === undefined)
  return new Set(unmatched.map(({ maker }) => maker))
}

/** The stored fill that equals the settled fill in size and side, if any. */
function matchOf(waiting: ReadonlyMap<string, UnsettledFill>, fill: SettledFill): UnsettledFill | undefined {
  const match = waiting.get(keyOf(fill))
  return match?.steps === fill.fill && match.side === fill.side ? match : undefined
}

/** The number of a forced order is not a salt. */
const keyOf = ({ maker, salt, isForced }: Pick<SettledFill, 'maker' | 'salt' | 'isForced'>): string =>
  `${isForced ? 'forced-' : ''}${maker}-${salt}`

export interface PartSettlement {
  readonly row: PartSettled
  readonly orders: readonly SettlingOrder[]
}

/** `movement`: new positions from `movementOf`, or read from the contract. */
export function settlePart(
  marketId: number,
  settled: BatchSettled,
  movement: Movement,
  state: PartState,
  mined: MinedAt,
): PartSettlement {
  const waiting = new Map(state.fills.map((fill) => [keyOf(fill), fill]))
  const before = new Map(state.orders.map((order) => [keyOf(order), order]))
  const after = new Map<string, SettlingOrder>()
  const releases = new Map<string, bigint>()
  const fills = settled.fills.map((fill, place) => {
    const stored = matchOf(waiting, fill)
    // A forced order that no batch had matched here is unknown, even if a stored order has its number.
    const isKnownOrder = stored !== undefined || !fill.isForced
    const order = isKnownOrder ? (after.get(keyOf(fill)) ?? before.get(keyOf(fill))) : undefined
    const next = order && settleFill(order, fill, stored)
    if (next) {
      after.set(keyOf(fill), next.order)
      releases.set(next.order.orderId, next.released)
    }
    const isKnown = next !== undefined && next !== null
    return fillSettled(
      marketId,
      settled,
      { fill, place, stored, order: isKnown ? order : undefined },
      state,
      movement,
    )
  })
  const closed = closedOrders(state, (order) => after.get(keyOf(order)) ?? order)
  for (const { order, released } of closed) {
    after.set(keyOf(order), order)
    releases.set(order.orderId, (releases.get(order.orderId) ?? 0n) + released)
  }
  const orders = [...after.values()]
  const row: PartSettled = {
    kind: 'part_settled',
    rollback: false,
    batch_id: settled.batchId,
    part: settled.part,
    parts: settled.parts,
    action_id: settled.actionId,
    as_of: settled.asOf,
    funding_index: settled.fundingIndex.toString(),
    price: settled.price,
    ...mined,
    fills: chargePending(fills, state.ledger),
    positions: positionChanges(state, movement),
    orders: orders.map((order) => settledOrder(order, releases.get(order.orderId) ?? 0n)),
    position_closed: closed.map(({ order }) => order.orderId),
  }
  return { row, orders }
}

/** Orders of positions that the part closes. `current`: an order after the part's fills. */
function closedOrders(
  { leaving, reduceOnly, moved }: PartState,
  current: (order: SettlingOrder) => SettlingOrder,
): ClosedOrder[] {
  const left = leaving.map((order) => closeWithPosition(current(order)))
  const ids = new Set(leaving.map(({ orderId }) => orderId))
  const others = reduceOnly.filter(({ orderId }) => !ids.has(orderId))
  const ended = others.map((order) => {
    const size = moved.get(order.userId)
    return size === undefined ? null : closeWithMove(current(order), size)
  })
  return [...left, ...ended].filter((order) => order !== null)
}

/**
 * The order after one of its fills was mined. Null if an unmatched fill exceeds the order's remaining steps.
 */
function settleFill(
  order: SettlingOrder,
  fill: SettledFill,
  stored: UnsettledFill | undefined,
): { order: SettlingOrder; released: bigint } | null {
  const matched = stored
    ? { ok: true as const, value: { life: order } }
    : transition(order, { kind: 'match', steps: fill.fill })
  if (!matched.ok) return null
  const settled = transition(matched.value.life, { kind: 'settle', steps: fill.fill })
  if (!settled.ok) return null
  const { life } = settled.value
  const released = isTerminal(life.status) ? life.reserved : 0n
  const held = life.held - (stored?.held ?? 0n)
  return { order: { ...life, held, reserved: life.reserved - released }, released }
}

interface Settling {
  readonly fill: SettledFill
  readonly place: number
  readonly stored: UnsettledFill | undefined
  readonly order: SettlingOrder | undefined
}

function fillSettled(
  marketId: number,
  { batchId, part }: BatchSettled,
  { fill, place, stored, order }: Settling,
  { users }: PartState,
  { realised }: Movement,
): FillSettled {
  return {
    fill_id: stored?.fillId ?? `${marketId}-${batchId}-${part}-c${place}`,
    matched: stored !== undefined,
    order_id: stored?.orderId ?? order?.orderId ?? unknownOrder(marketId, fill),
    ...(fill.isForced ? { forced: true as const } : {}),
    user_id: users.get(fill.maker) as number,
    side: fill.side,
    steps: fill.fill,
    taker_steps: fill.taker,
    fee: fill.fee.toString(),
    free_delta: fill.freeDelta.toString(),
    from_pending: '0',
    realized_pnl: (realised[place] ?? 0n).toString(),
    held: (stored?.held ?? 0n).toString(),
  }
}

/** Id for a fill without a stored order: by the order's salt, or the forced order's number. */
const unknownOrder = (marketId: number, { maker, salt, isForced }: SettledFill): string =>
  `${marketId}-${isForced ? 'liquidation-' : ''}${maker}-${salt}`

/**
 * Charges a debit beyond the free balance to a pending withdrawal, as the bank does. The account's last fill
 * in the part carries the amount.
 */
function chargePending(fills: FillSettled[], ledger: ReadonlyMap<number, LedgerEntry>): FillSettled[] {
  const charged = [...fills]
  for (const [userId, own] of Map.groupBy(fills, ({ user_id }) => user_id)) {
    const { free, pending } = ledger.get(userId) ?? { free: 0n, pending: 0n }
    const short = -own.reduce((sum, fill) => sum + BigInt(fill.free_delta), free)
    if (short <= 0n) continue
    const last = charged.lastIndexOf(own.at(-1) as FillSettled)
    const from_pending = (short < pending ? short : pending).toString()
    charged[last] = { ...(charged[last] as FillSettled), from_pending }
  }
  return charged
}

function positionChanges({ users, positions }: PartState, movement: Movement): PositionChange[] {
  return [...movement.positions].map(([maker, after]) =>
    positionChange(users.get(maker) as number, positions.get(maker) ?? FLAT, after),
  )
}

export const positionChange = (userId: number, before: Position, after: Position): PositionChange => ({
  user_id: userId,
  size_delta: after.size - before.size,
  entry_notional_delta: (after.entryNotional - before.entryNotional).toString(),
  folded_margin_delta: (after.foldedMargin - before.foldedMargin).toString(),
  leverage_before: before.leverage,
  leverage_after: after.leverage,
})

/**
 * Rolls back a part after its block left the chain: positions, balances and orders return to their prior
 * state, and the fills wait again.
 */
export function rollBackPart(row: PartSettled, orders: readonly SettlingOrder[]): PartSettlement {
  const ended = new Map(row.orders.map((order) => [order.order_id, order]))
  const closed = new Set(row.position_closed)
  const before = orders.map((order) => {
    const fills = row.fills.filter(({ order_id }) => order_id === order.orderId)
    const back = rollBackFills(order, fills, BigInt(ended.get(order.orderId)?.reserved_delta ?? 0))
    const after = ended.get(order.orderId)
    return after !== undefined && closed.has(order.orderId) ? reopenWithPosition(back, after) : back
  })
  const statuses = before.map((order) => ({
    ...settledOrder(order, 0n),
    reserved_delta: ended.get(order.orderId)?.reserved_delta ?? '0',
  }))
  return { row: { ...row, rollback: true, orders: statuses }, orders: before }
}

/** An order that ended with or after these fills waits for them again and keeps its reason. */
function rollBackFills(
  order: SettlingOrder,
  fills: readonly FillSettled[],
  releasedDelta: bigint,
): SettlingOrder {
  const sum = (of: (fill: FillSettled) => number): Steps =>
    fills.reduce((total, fill) => total + of(fill), 0) as Steps
  const rolledBack = transition(order, {
    kind: 'rollback',
    steps: sum((fill) => fill.steps),
    settling: sum((fill) => (fill.matched ? fill.steps : 0)),
  })
  invariant(rolledBack.ok, 'only a mined fill is rolled back')
  const held = fills.reduce((total, fill) => total + BigInt(fill.held), 0n)
  const { life } = rolledBack.value
  return { ...life, held: life.held + held, reserved: life.reserved - releasedDelta }
}
