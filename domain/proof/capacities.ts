/**
 * Reduces positions to the capacity that a batch's orders can use.
 * Positions are public on chain with their addresses, so an exact size or bankruptcy price would identify the account.
 */
import type { ClearingInputs } from '../auction/clearing.ts'
import { PositionCapacities, type PositionCapacity } from '../auction/position-capacity.ts'
import type { RestingOrder } from '../book/book.ts'
import { type Band, priceBand } from '../market/band.ts'
import { maxOf, minOf, type Steps, type Ticks, type UserId } from '../units.ts'
import type { Group, StatedCapacity } from './batch-statement.ts'

/** Capacities by group. */
export function statedCapacities(
  { spec, oracle, fundingIndex, positions }: ClearingInputs,
  sequence: readonly RestingOrder[],
  names: ReadonlyMap<UserId, Group>,
): StatedCapacity[] {
  const band = priceBand(spec, oracle)
  const rules = new PositionCapacities(spec, band, oracle, fundingIndex)
  const byAccount = Map.groupBy(sequence, ({ account }) => account)
  const stated: StatedCapacity[] = []
  for (const [account, position] of positions) {
    const orders = byAccount.get(account) ?? []
    if (orders.length === 0 || position.size === 0) continue
    const used = usedCapacity(band, rules.of(position, orders), orders)
    if (used !== null) stated.push({ group: names.get(account) as Group, ...used })
  }
  return stated.sort((a, b) => a.group - b.group)
}

/** Null if the orders behave like orders of a flat account. */
function usedCapacity(
  band: Band,
  { size, reducingSide, bankruptcyLimit, mayOpen }: PositionCapacity,
  orders: readonly RestingOrder[],
): Omit<StatedCapacity, 'group'> | null {
  const closing = orders.filter(({ side }) => side === reducingSide)
  const opens = orders.some(({ openable }) => openable > 0)
  const used = { mayOpen: mayOpen || !opens }
  if (closing.length > 0) {
    const steps = closing.reduce((sum, { remaining }) => sum + remaining, 0)
    const limit = usedLimit(band, bankruptcyLimit, closing)
    const reducible = minOf(Math.abs(size), steps) as Steps
    return { reducingSide, reducible, bankruptcyLimit: limit, ...used }
  }
  if (used.mayOpen) return null
  return { reducingSide: null, reducible: 0 as Steps, bankruptcyLimit: 0 as Ticks, ...used }
}

/**
 * The band edge if the bankruptcy price binds no order; one tick beyond the band if it forbids every price.
 */
function usedLimit({ lo, hi }: Band, limit: Ticks, closing: readonly RestingOrder[]): Ticks {
  const isSell = closing[0]?.side === 'SHORT'
  const binds = closing.some((order) =>
    isSell
      ? order.type === 'MARKET' || maxOf(order.limit, lo) < limit
      : order.type === 'MARKET' || minOf(order.limit, hi) > limit,
  )
  if (isSell) return binds ? maxOf(lo, minOf(limit, (hi + 1) as Ticks)) : lo
  return binds ? minOf(hi, maxOf(limit, (lo - 1) as Ticks)) : hi
}
