/**
 * Brackets: an entry and its exits, linked by the trader's number. Exits wait until the entry has matched, and end
 * together. A bracket has no state besides its live orders.
 */
import type { OrderType, Side, StatusReason } from './order.ts'
import { type ClosingReason, isClosable, isTerminal, type OrderLife, unmatched } from './order-state.ts'

/** Highest bracket number. */
export const MAX_BRACKET = 2 ** 32 - 1

/** A bracket has at most one live order in each role. */
export type BracketRole = 'entry' | 'take_profit' | 'stop_loss'

interface Typed {
  readonly type: OrderType
  readonly reduceOnly: boolean
}

/** The order's role; null if the order can never be part of a bracket. */
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
  /** Seq in the book. Of two triggered exits, the later exit has the higher seq. */
  readonly seq: number
  readonly side: Side
  readonly unused: number
}

/** Whether no step of an entry was matched, including the steps of orders that it replaced. */
export const isUnmatched = ({ filled, settling, unused }: BracketMember): boolean =>
  filled + settling + unused === 0

/** Past events of bracket orders that are no longer live. */
export interface BracketEvents {
  /** True if an exit is filled and fully mined. */
  readonly hasFilledExit: boolean
  /** True if an entry ended without a fill and without a replacement. */
  readonly hasLostEntry: boolean
}

export interface BracketEnd<Member> {
  readonly order: Member
  readonly reason: ClosingReason & StatusReason
}

/**
 * Bracket orders that end because of another order in the bracket. `live`: all orders of the bracket that have not ended.
 */
export function bracketEnds<Member extends BracketMember>(
  live: readonly Member[],
  { hasFilledExit, hasLostEntry }: BracketEvents,
): BracketEnd<Member>[] {
  // An earlier entry that settles its last steps may be live beside the current entry.
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

/** The exit that stays: a fully matched exit, or the exit that triggered last. */
function leadingExit<Member extends BracketMember>(triggered: readonly Member[]): Member | undefined {
  const matched = triggered.find((exit) => unmatched(exit) === 0)
  return matched ?? triggered.toSorted((a, b) => b.seq - a.seq)[0]
}
