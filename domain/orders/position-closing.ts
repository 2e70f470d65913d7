/** Decides when reduce-only orders end with the position that they reduce. */
import { invariant } from '../invariant.ts'
import type { Steps } from '../units.ts'
import type { Side } from './order.ts'
import { type OrderLife, transition } from './order-state.ts'

/** Side of the orders that reduce a closing or flipping position; null if the position does neither. */
export function closedSide(before: number, after: number): Side | null {
  if (before === 0 || Math.sign(after) === Math.sign(before)) return null
  return before > 0 ? 'SHORT' : 'LONG'
}

/**
 * Whether the order ends with a position that orders of `side` reduced. An order placed before the position ends too.
 */
export const endsWith = (
  { reduceOnly, side }: { readonly reduceOnly: boolean; readonly side: Side },
  closed: Side | null,
): boolean => reduceOnly && side === closed

/** First fill that closes or flips an account's position, and the side of the orders that end with it. */
export interface PositionClosing<Fill> {
  readonly fill: Fill
  readonly side: Side
}

/** `fills`: an account's fills, in settlement order. Null if its position neither closes nor flips. */
export function positionClosing<Fill extends { readonly side: Side; readonly fill: Steps }>(
  size: Steps,
  fills: readonly Fill[],
): PositionClosing<Fill> | null {
  let before: number = size
  for (const fill of fills) {
    const after = before + (fill.side === 'LONG' ? fill.fill : -fill.fill)
    const side = closedSide(before, after)
    if (side !== null) return { fill, side }
    before = after
  }
  return null
}

/** Takes the order out of the book until the fill that closed its position is mined or voided. */
export function leaveWithPosition<Order extends OrderLife>(order: Order, closedBy: string): Order {
  const verdict = transition(order, { kind: 'leave', closedBy })
  invariant(verdict.ok, 'an order that leaves with its position is in the book or waits')
  return verdict.value.life
}

/**
 * The order before its position closed: in the book, or leaving with `closedBy`, the fill that will be mined again.
 * Unchanged if the order has ended for another reason since.
 */
export function restoreWithPosition<Order extends OrderLife>(
  order: Order,
  { waits, closedBy }: { readonly waits: boolean; readonly closedBy: string | null },
): Order {
  const verdict = transition(order, { kind: 'restore', waits, closedBy })
  return verdict.ok ? verdict.value.life : order
}
