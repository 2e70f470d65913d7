/**
 * Computes how many steps of an account's limit orders can execute.
 * The auction, the levels shown to readers, estimates and the mark price share this rule.
 */
import { signOf } from '../positions/position.ts'
import { minOf, type Seq, type Steps, type Ticks } from '../units.ts'
import type { Side } from './order.ts'

/** Participating steps of an order: steps that close its account's position, and steps that open. */
export interface OrderShare {
  readonly reducing: Steps
  readonly opening: Steps
}

/** Share of an order, with `reducible` position steps left for it and at most `openable` opening steps. */
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
  /** Opening steps that the reservation covers; 0 for a reduce-only order. */
  readonly openable: Steps
}

/**
 * Sorts orders at one limit in the sequence in which they use the position: reduce-only first, then by seq.
 */
export const reduceOnlyFirst = (
  a: Pick<BookOrder, 'reduceOnly' | 'seq'>,
  b: Pick<BookOrder, 'reduceOnly' | 'seq'>,
): number => Number(b.reduceOnly) - Number(a.reduceOnly) || a.seq - b.seq

/** Whether the order executes whole, regardless of its account's position. */
export const isCovered = ({ remaining, openable }: Pick<BookOrder, 'remaining' | 'openable'>): boolean =>
  openable >= remaining

/**
 * Executable steps of an account's limit orders at matched position `size`, by seq, best limit first. They use signed
 * limits, unadjusted for margin or band; openings stop at the reservation.
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

/**
 * Sorts each side from its best limit on. Both sides may mix, because the position can only be used by orders on one side.
 */
const byPriority = (orders: readonly BookOrder[]): BookOrder[] =>
  orders.toSorted((a, b) => signOf(b.side) * b.limit - signOf(a.side) * a.limit || reduceOnlyFirst(a, b))
