/**
 * The life of an order. A fill is matched by the auction, settles on chain, and counts once its receipt is in: until
 * then it is `settling`, the status stays, and whatever else ends the order waits. So a batch that fails takes no
 * terminal status back.
 *
 * | from                    | step                     | to                                             |
 * |-------------------------|--------------------------|------------------------------------------------|
 * | (new)                   | accepted                 | PENDING_TRIGGER if conditional, else OPEN      |
 * | PENDING_TRIGGER         | trigger                  | OPEN                                           |
 * | PENDING_TRIGGER, OPEN   | close                    | CANCELLED, or EXPIRED where time is the reason |
 * | OPEN, something settles | close                    | CANCEL_PENDING_FINALIZE; a market order's remainder: OPEN |
 * | OPEN                    | match                    | OPEN                                           |
 * | OPEN                    | settle                   | FILLED with the last step, else OPEN; a market order's last receipt: CANCELLED |
 * | OPEN                    | void                   | OPEN, or CANCELLED where it cannot return to the book |
 * | CANCEL_PENDING_FINALIZE | settle, void           | the same while something settles; then FILLED if that fills it, else CANCELLED, EXPIRED |
 *
 * What ends is final, but for blocks that leave the chain:
 *
 * | from                    | step                     | to                                             |
 * |-------------------------|--------------------------|------------------------------------------------|
 * | FILLED                  | rollback                   | OPEN                                           |
 * | CANCELLED, EXPIRED      | rollback                   | what it was before the receipt: CANCEL_PENDING_FINALIZE, or OPEN for a market order's remainder |
 * | CANCELLED, CANCEL_PENDING_FINALIZE: POSITION_CLOSED | restore | PENDING_TRIGGER or OPEN             |
 *
 * Every other pair is refused and changes nothing.
 */

import type { Steps } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { isConditional, type Order, type OrderStatus, type StatusReason } from './order.ts'

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

export type TransitionInput =
  | { readonly kind: 'trigger' }
  /** The auction has filled `steps`. */
  | { readonly kind: 'match'; readonly steps: Steps }
  /** A receipt has confirmed `steps` of what was matched. */
  | { readonly kind: 'settle'; readonly steps: Steps }
  /**
   * `steps` of what was matched will not be mined. `ending`: why it does not return to the book; null where
   * it does, at its old place, unless it has been cancelled or has expired meanwhile.
   */
  | { readonly kind: 'void'; readonly steps: Steps; readonly ending: ClosingReason | null }
  /** `steps` that counted as mined have left the chain with their block. `settling` of them wait for being mined again. */
  | { readonly kind: 'rollback'; readonly steps: Steps; readonly settling: Steps }
  /** The block that closed the position it protects has left the chain. `waits`: it has not been triggered yet. */
  | { readonly kind: 'restore'; readonly waits: boolean }
  | { readonly kind: 'close'; readonly reason: ClosingReason }

/**
 * The lifecycle events that are told to traders; closed by the contract with traders. A trigger is a detail
 * of the next one.
 */
export type OrderEventKind = 'CREATED' | 'PARTIALLY_FILLED' | TerminalStatus

/** The way of one fill to the chain. RETRYING: its block left the chain and it is sent again. FAILED: voided. */
export type FillStatus = 'MATCHED' | 'SUBMITTED' | 'MINED' | 'CONFIRMED' | 'RETRYING' | 'FAILED'

export interface OrderTransition<Life extends OrderLife = OrderLife> {
  readonly life: Life
  readonly events: readonly OrderEventKind[]
}

export type TransitionRefusal =
  /** It has ended: a repeated cancel answers with the status it has. */
  | { readonly code: 'ALREADY_ENDED'; readonly status: TerminalStatus }
  /** It has left the book and waits for its settling fills: a repeated cancel answers likewise. */
  | { readonly code: 'ALREADY_CLOSING'; readonly reason: ClosingReason }
  | { readonly code: 'NOT_WAITING' }
  | { readonly code: 'NOT_IN_BOOK' }
  | { readonly code: 'NOT_CLOSED_WITH_POSITION' }
  | { readonly code: 'TOO_MUCH'; readonly most: Steps }

type TransitionResult<Life extends OrderLife> = Verdict<OrderTransition<Life>, TransitionRefusal>

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
export function transition<Life extends OrderLife>(
  life: Life,
  taken: TransitionInput,
): TransitionResult<Life> {
  if (taken.kind === 'rollback') return rollback(life, taken)
  if (taken.kind === 'restore') return restore(life, taken.waits)
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
    case 'void':
      return voidMatch(life, taken.steps, taken.ending)
    case 'close':
      return close(life, taken.reason)
  }
}

/** The terminal status that goes with each reason. */
export const statusFor = (reason: StatusReason): TerminalStatus => {
  if (reason === 'FILLED') return 'FILLED'
  return reason === 'EXPIRED' || reason === 'SIGNER_EXPIRED' ? 'EXPIRED' : 'CANCELLED'
}

const still = <Life extends OrderLife>(life: Life): TransitionResult<Life> => accept({ life, events: [] })

function match<Life extends OrderLife>(life: Life, steps: Steps): TransitionResult<Life> {
  if (!isInBook(life)) return refuse({ code: 'NOT_IN_BOOK' })
  if (steps > unmatched(life)) return refuse({ code: 'TOO_MUCH', most: unmatched(life) })
  return still({ ...life, settling: (life.settling + steps) as Steps })
}

function settle<Life extends OrderLife>(life: Life, steps: Steps): TransitionResult<Life> {
  if (steps > life.settling) return refuse({ code: 'TOO_MUCH', most: life.settling })
  const filled = (life.filled + steps) as Steps
  const settled = { ...life, filled, settling: (life.settling - steps) as Steps }
  if (filled === life.quantity) return accept(ended(settled, 'FILLED'))
  const { life: after, events } = endIfDue(settled)
  return accept({ life: after, events: ['PARTIALLY_FILLED', ...events] })
}

function voidMatch<Life extends OrderLife>(
  life: Life,
  steps: Steps,
  ending: ClosingReason | null,
): TransitionResult<Life> {
  if (steps > life.settling) return refuse({ code: 'TOO_MUCH', most: life.settling })
  const returned = { ...life, settling: (life.settling - steps) as Steps }
  // A market order's remainder had left the book because of the very fill that is taken back.
  const standing = life.closingReason === 'MARKET_REMAINDER' ? null : life.closingReason
  return accept(endIfDue({ ...returned, closingReason: standing ?? ending }))
}

function close<Life extends OrderLife>(life: Life, reason: ClosingReason): TransitionResult<Life> {
  if (life.closingReason !== null) return refuse({ code: 'ALREADY_CLOSING', reason: life.closingReason })
  if (life.settling === 0) return accept(ended(life, reason))
  // The remainder of a market order ends with its fills, in one event; nobody has asked for a cancel.
  const status = reason === 'MARKET_REMAINDER' ? life.status : 'CANCEL_PENDING_FINALIZE'
  return still({ ...life, status, closingReason: reason })
}

function rollback<Life extends OrderLife>(
  life: Life,
  { steps, settling }: { readonly steps: Steps; readonly settling: Steps },
): TransitionResult<Life> {
  if (steps > life.filled || settling > steps) return refuse({ code: 'TOO_MUCH', most: life.filled })
  const before = settling > 0 || life.status === 'FILLED' ? reopened(life) : life
  const filled = (life.filled - steps) as Steps
  return still({ ...before, filled, settling: (life.settling + settling) as Steps })
}

/** An order that had ended, as it was before its last receipt: it waits for it again, and with the same reason. */
function reopened<Life extends OrderLife>(life: Life): Life {
  if (!isTerminal(life.status)) return life
  const reason = life.statusReason === 'FILLED' ? null : life.statusReason
  const isOpen = reason === null || reason === 'MARKET_REMAINDER'
  const status = isOpen ? 'OPEN' : 'CANCEL_PENDING_FINALIZE'
  return { ...life, status, statusReason: null, closingReason: reason }
}

function restore<Life extends OrderLife>(life: Life, waits: boolean): TransitionResult<Life> {
  if ((life.statusReason ?? life.closingReason) !== 'POSITION_CLOSED') {
    return refuse({ code: 'NOT_CLOSED_WITH_POSITION' })
  }
  return still({
    ...life,
    status: waits ? 'PENDING_TRIGGER' : 'OPEN',
    statusReason: null,
    closingReason: null,
  })
}

function endIfDue<Life extends OrderLife>(life: Life): OrderTransition<Life> {
  const isDue = life.closingReason !== null && life.settling === 0
  return isDue ? ended(life, life.closingReason) : { life, events: [] }
}

function ended<Life extends OrderLife>(life: Life, reason: StatusReason): OrderTransition<Life> {
  const status = statusFor(reason)
  return { life: { ...life, status, statusReason: reason, closingReason: null }, events: [status] }
}
