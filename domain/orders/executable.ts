/**
 * Computes how many steps of an account's limit orders can execute. The auction, the levels that readers see,
 * estimates and the mark price all use this rule.
 */
import { signOf } from '../positions/position.ts'
import { minOf, type Seq, type Steps, type Ticks } from '../units.ts'
import type { Side } from './order.ts'

/** The steps by which an order takes part: those that close its account's position, and those that open. */
export interface OrderShare {
  readonly reducing: Steps
  readonly opening: Steps
}

/** `reducible` steps of the position are left for the order, and it may open `openable` steps. */
export function shareOf(remaining: Steps, reducible: Steps, openable: Steps): OrderShare {
  const reducing = minOf(remaining, reducible)
  return { reducing, opening: minOf((remaining - reducing) as Steps, openable) }
}

/** A limit order in the book. */
export interface BookOrder {
  readonly seq: Seq
  readonly side: Side
  readonly limit: Ticks
  readonly remaining: Steps
  readonly reduceOnly: boolean
  /** Steps that its reservation covers as opening; 0 for a reduce-only order. */
  readonly openable: Steps
}

/** The sequence in which the orders at one limit get the position. */
export const reduceOnlyFirst = (
  a: Pick<BookOrder, 'reduceOnly' | 'seq'>,
  b: Pick<BookOrder, 'reduceOnly' | 'seq'>,
): number => Number(b.reduceOnly) - Number(a.reduceOnly) || a.seq - b.seq

/** Whether the order executes whole, whatever its account's position is. */
export const isCovered = ({ remaining, openable }: Pick<BookOrder, 'remaining' | 'openable'>): boolean =>
  openable >= remaining

/**
 * The steps of each of an account's limit orders that can execute while its matched position is `size`, by
 * seq. The orders against the position get it from the best limit on; the rest of a plain order opens as far
 * as its reservation covers it. Limits are the signed ones: a limit that the margin requirement or the band
 * moves is not considered.
 */
export function executableSteps(size: Steps, orders: readonly BookOrder[]): Map<Seq, Steps> {
  const steps = new Map<Seq, Steps>()
  let reducible = Math.abs(size) as Steps
  for (const { seq, side, remaining, openable } of byPriority(orders)) {
    const reduces = size * signOf(side) < 0
    const { reducing, opening } = shareOf(remaining, reduces ? reducible : (0 as Steps), openable)
    reducible = (reducible - reducing) as Steps
    steps.set(seq, (reducing + opening) as Steps)
  }
  return steps
}

/** Within each side from the best limit on. A position is against one side only, so the sides may mix. */
const byPriority = (orders: readonly BookOrder[]): BookOrder[] =>
  orders.toSorted((a, b) => signOf(b.side) * b.limit - signOf(a.side) * a.limit || reduceOnlyFirst(a, b))
