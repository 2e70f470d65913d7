/**
 * Brackets: an entry and its exits, linked by a number that the trader chooses per account and market. No signature covers it. The exits wait
 * until the entry has matched, and end together. A bracket is the set of live orders with its number; it has no state of its own.
 */
import type { OrderType, Side, StatusReason } from './order.ts'
import { type ClosingReason, isClosable, isTerminal, type OrderLife, unmatched } from './order-state.ts'

/** Highest number of a bracket. */
export const MAX_BRACKET = 2 ** 32 - 1

/** A bracket has at most one live order in each role. */
export type BracketRole = 'entry' | 'take_profit' | 'stop_loss'

interface Typed {
  readonly type: OrderType
  readonly reduceOnly: boolean
}

/** The order's role; null if such an order is never part of a bracket. */
export function bracketRole({ type, reduceOnly }: Typed): BracketRole | null {
  if (type.startsWith('TAKE_PROFIT_')) return 'take_profit'
  if (type.startsWith('STOP_LOSS_')) return 'stop_loss'
  return reduceOnly ? null : 'entry'
}

export const isExit = (order: Typed): boolean =>
  order.type.startsWith('TAKE_PROFIT_') || order.type.startsWith('STOP_LOSS_')

/** A live order of a bracket. */
export interface BracketMember extends OrderLife, Typed {
  readonly accepted: number
  /** Place in the book: of two triggered exits the later one has the higher. */
  readonly seq: number
  readonly side: Side
  readonly unused: number
}

/** Whether nothing of an entry was matched, by it or by the orders that it has replaced. */
export const isUnmatched = ({ filled, settling, unused }: BracketMember): boolean =>
  filled + settling + unused === 0

/** Past events of bracket orders that are not live any more. */
export interface BracketEvents {
  /** An exit is filled: all of it is mined. */
  readonly hasFilledExit: boolean
  /** An entry has ended of which nothing is filled, and no other order has replaced it. */
  readonly hasLostEntry: boolean
}

export interface BracketEnd<Member> {
  readonly order: Member
  readonly reason: ClosingReason & StatusReason
}

/** The orders of a bracket that end because of the others. `live`: all of its orders that have not ended. */
export function bracketEnds<Member extends BracketMember>(
  live: readonly Member[],
  { hasFilledExit, hasLostEntry }: BracketEvents,
): BracketEnd<Member>[] {
  // An earlier entry that settles a last part may be live beside the present one.
  const entries = live.filter((order) => !isExit(order) && isClosable(order))
  const exits = live.filter(isExit)
  const ends = (orders: readonly Member[], reason: BracketEnd<Member>['reason']): BracketEnd<Member>[] =>
    orders.filter((order) => isClosable(order) && unmatched(order) > 0).map((order) => ({ order, reason }))
  if (hasFilledExit) return ends(exits, 'EXIT_FILLED')
  if (hasLostEntry && entries.length === 0) return ends(exits, 'ENTRY_ENDED')
  const triggered = exits.filter(({ status }) => status !== 'PENDING_TRIGGER' && !isTerminal(status))
  if (triggered.length === 0) return []
  const leading = leadingExit(triggered)
  const outdone = triggered.filter((exit) => exit !== leading)
  return ends([...outdone, ...entries], 'EXIT_TRIGGERED')
}

/** The exit that stays: one of which all is matched, or the one that was triggered last. */
function leadingExit<Member extends BracketMember>(triggered: readonly Member[]): Member | undefined {
  const matched = triggered.find((exit) => unmatched(exit) === 0)
  return matched ?? triggered.toSorted((a, b) => b.seq - a.seq)[0]
}
