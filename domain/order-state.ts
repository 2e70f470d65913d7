/**
 * The life of an order. A fill is matched by the auction, settles on chain, and counts once its receipt is in: until
 * then it is `settling`, the status stays, and whatever else ends the order waits. So a batch that fails takes no
 * terminal status back.
 *
 * | from                    | step                     | to                                             |
 * |-------------------------|--------------------------|------------------------------------------------|
 * | PENDING_TRIGGER         | trigger                  | OPEN                                           |
 * | PENDING_TRIGGER, OPEN   | close                    | CANCELLED, EXPIRED                             |
 * | OPEN, something settles | close                    | CANCEL_PENDING_FINALIZE (remainder: OPEN)      |
 * | OPEN                    | settle                   | FILLED with the last step, else OPEN           |
 * | CANCEL_PENDING_FINALIZE | last settle or unwind    | FILLED if that fills it, else CANCELLED, EXPIRED |
 * | FILLED                  | reverse                  | CANCELLED                                      |
 */
import { isConditional, type Order, type OrderStatus, type StatusReason } from './order.ts'
import type { Steps } from './units.ts'
import { accept, refuse, type Verdict } from './verdict.ts'

export const TERMINAL_STATUSES = ['FILLED', 'CANCELLED', 'EXPIRED'] as const satisfies readonly OrderStatus[]
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number]

/** Why an order leaves the book other than by its last fill. */
export type ClosingReason = Exclude<StatusReason, 'FILLED'>

export interface OrderLife {
  readonly status: OrderStatus
  /** Set with a terminal status, and only then. */
  readonly statusReason: StatusReason | null
  readonly quantity: Steps
  /** Mined. */
  readonly filled: Steps
  /** Matched and not yet mined. */
  readonly settling: Steps
  /** Set when it has left the book while some of it settles: the reason it ends with unless that fills it. */
  readonly closingReason: ClosingReason | null
}

export type OrderStep =
  | { readonly kind: 'trigger' }
  /** The auction has filled `steps`. */
  | { readonly kind: 'match'; readonly steps: Steps }
  /** A receipt has confirmed `steps` of what was matched. */
  | { readonly kind: 'settle'; readonly steps: Steps }
  /**
   * `steps` of what was matched will not be mined. `ending`: why it does not return to the book; null where
   * it does, at its old place, unless it has been cancelled or has expired meanwhile.
   */
  | { readonly kind: 'unwind'; readonly steps: Steps; readonly ending: ClosingReason | null }
  /** `steps` that counted as mined have left the chain for good: the one way back from FILLED. */
  | { readonly kind: 'reverse'; readonly steps: Steps }
  | { readonly kind: 'close'; readonly reason: ClosingReason }

/**
 * The lifecycle events that are told to traders; closed by the contract with traders. A trigger is a detail
 * of the next one.
 */
export type OrderEventKind = 'CREATED' | 'PARTIALLY_FILLED' | TerminalStatus

/** The way of one fill to the chain. RETRYING: its block left the chain and it is sent again. FAILED: unwound. */
export type FillStatus = 'MATCHED' | 'SUBMITTED' | 'MINED' | 'CONFIRMED' | 'RETRYING' | 'FAILED'

export interface OrderTransition<Life extends OrderLife = OrderLife> {
  readonly life: Life
  readonly events: readonly OrderEventKind[]
}

export type StepRefusal =
  /** It has ended: a repeated cancel answers with the status it has. */
  | { readonly code: 'ALREADY_ENDED'; readonly status: TerminalStatus }
  /** It has left the book and waits for its settling fills: a repeated cancel answers likewise. */
  | { readonly code: 'ALREADY_CLOSING'; readonly reason: ClosingReason }
  | { readonly code: 'NOT_WAITING' }
  | { readonly code: 'NOT_IN_BOOK' }
  | { readonly code: 'TOO_MUCH'; readonly most: Steps }

type Outcome<Life extends OrderLife> = Verdict<OrderTransition<Life>, StepRefusal>

export const isTerminal = (status: OrderStatus): status is TerminalStatus =>
  status === 'FILLED' || status === 'CANCELLED' || status === 'EXPIRED'

/** What the auction may still fill. */
export const unmatched = ({ quantity, filled, settling }: OrderLife): Steps =>
  (quantity - filled - settling) as Steps

/** Takes part in batches. */
export const isInBook = (life: OrderLife): boolean =>
  life.status === 'OPEN' && life.closingReason === null && unmatched(life) > 0

/** An accepted order. Its event is CREATED. */
export const accepted = ({ type, quantity }: Pick<Order, 'type' | 'quantity'>): OrderLife => ({
  status: isConditional(type) ? 'PENDING_TRIGGER' : 'OPEN',
  statusReason: null,
  quantity,
  filled: 0 as Steps,
  settling: 0 as Steps,
  closingReason: null,
})

/** One step of an order's life, or why it cannot be taken. Other fields of `life` pass through. */
export function step<Life extends OrderLife>(life: Life, taken: OrderStep): Outcome<Life> {
  if (taken.kind === 'reverse') return reverse(life, taken.steps)
  if (isTerminal(life.status)) return refuse({ code: 'ALREADY_ENDED', status: life.status })
  switch (taken.kind) {
    case 'trigger':
      return life.status === 'PENDING_TRIGGER'
        ? still({ ...life, status: 'OPEN' })
        : refuse({ code: 'NOT_WAITING' })
    case 'match':
      return match(life, taken.steps)
    case 'settle':
      return settle(life, taken.steps)
    case 'unwind':
      return unwind(life, taken.steps, taken.ending)
    case 'close':
      return close(life, taken.reason)
  }
}

/** The terminal status that goes with each reason. */
export const statusFor = (reason: StatusReason): TerminalStatus => {
  if (reason === 'FILLED') return 'FILLED'
  return reason === 'EXPIRED' || reason === 'SIGNER_EXPIRED' ? 'EXPIRED' : 'CANCELLED'
}

const still = <Life extends OrderLife>(life: Life): Outcome<Life> => accept({ life, events: [] })

function match<Life extends OrderLife>(life: Life, steps: Steps): Outcome<Life> {
  if (!isInBook(life)) return refuse({ code: 'NOT_IN_BOOK' })
  if (steps > unmatched(life)) return refuse({ code: 'TOO_MUCH', most: unmatched(life) })
  return still({ ...life, settling: (life.settling + steps) as Steps })
}

function settle<Life extends OrderLife>(life: Life, steps: Steps): Outcome<Life> {
  if (steps > life.settling) return refuse({ code: 'TOO_MUCH', most: life.settling })
  const filled = (life.filled + steps) as Steps
  const settled = { ...life, filled, settling: (life.settling - steps) as Steps }
  if (filled === life.quantity) return accept(ended(settled, 'FILLED'))
  const { life: after, events } = endIfDue(settled)
  return accept({ life: after, events: ['PARTIALLY_FILLED', ...events] })
}

function unwind<Life extends OrderLife>(
  life: Life,
  steps: Steps,
  ending: ClosingReason | null,
): Outcome<Life> {
  if (steps > life.settling) return refuse({ code: 'TOO_MUCH', most: life.settling })
  const returned = { ...life, settling: (life.settling - steps) as Steps }
  // A market order's remainder had left the book because of the very fill that is taken back.
  const standing = life.closingReason === 'MARKET_REMAINDER' ? null : life.closingReason
  return accept(endIfDue({ ...returned, closingReason: standing ?? ending }))
}

function close<Life extends OrderLife>(life: Life, reason: ClosingReason): Outcome<Life> {
  if (life.closingReason !== null) return refuse({ code: 'ALREADY_CLOSING', reason: life.closingReason })
  if (life.settling === 0) return accept(ended(life, reason))
  // The remainder of a market order ends with its fills, in one event; nobody has asked for a cancel.
  const status = reason === 'MARKET_REMAINDER' ? life.status : 'CANCEL_PENDING_FINALIZE'
  return still({ ...life, status, closingReason: reason })
}

function reverse<Life extends OrderLife>(life: Life, steps: Steps): Outcome<Life> {
  if (steps > life.filled) return refuse({ code: 'TOO_MUCH', most: life.filled })
  const reversed = { ...life, filled: (life.filled - steps) as Steps }
  return life.status === 'FILLED' ? accept(ended(reversed, 'SETTLEMENT_REVERTED')) : still(reversed)
}

function endIfDue<Life extends OrderLife>(life: Life): OrderTransition<Life> {
  const isDue = life.closingReason !== null && life.settling === 0
  return isDue ? ended(life, life.closingReason) : { life, events: [] }
}

function ended<Life extends OrderLife>(life: Life, reason: StatusReason): OrderTransition<Life> {
  const status = statusFor(reason)
  return { life: { ...life, status, statusReason: reason, closingReason: null }, events: [status] }
}
