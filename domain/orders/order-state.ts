/**
 * The state machine of an order, from acceptance to its terminal status.
 *
 * The auction matches a fill, the fill settles on chain, and it counts as filled once its receipt is in. Until then
 * its steps are `settling`, the status stays, and any other reason to end the order waits. A batch that fails
 * therefore never reverts a terminal status.
 *
 * | from                    | transition   | to                                                                  |
 * |-------------------------|--------------|---------------------------------------------------------------------|
 * | (new)                   | accepted     | PENDING_TRIGGER if conditional, otherwise OPEN                      |
 * | PENDING_TRIGGER         | trigger      | OPEN                                                                |
 * | PENDING_TRIGGER, OPEN   | close        | EXPIRED if it expired, otherwise CANCELLED                          |
 * | PENDING_TRIGGER, OPEN   | leave        | the same, out of the book with its position (`isLeaving`)           |
 * | PENDING_TRIGGER, OPEN,  | close        | as from the book: a cancel is final, the end of the position is not |
 * | leaving                 |              | until the fill that closed it is mined                              |
 * | OPEN, steps settling    | close        | CANCEL_PENDING_FINALIZE; OPEN for a remainder (market, `ioc`)        |
 * | OPEN                    | match        | OPEN                                                                |
 * | OPEN                    | settle       | FILLED with the last step; CANCELLED with the last receipt of a     |
 * |                         |              | remainder; otherwise OPEN                                           |
 * | OPEN                    | void         | OPEN; CANCELLED if it cannot return to the book                     |
 * | CANCEL_PENDING_FINALIZE | settle, void | the same while steps settle; then FILLED if that fills it,          |
 * |                         |              | otherwise CANCELLED or EXPIRED                                      |
 *
 * A terminal status is final unless a block leaves the chain:
 *
 * | from                    | transition   | to                                                                  |
 * |-------------------------|--------------|---------------------------------------------------------------------|
 * | FILLED                  | rollback     | OPEN                                                                |
 * | CANCELLED, EXPIRED      | rollback     | the status before the receipt: CANCEL_PENDING_FINALIZE, or OPEN for |
 * |                         |              | a remainder                                                         |
 * | leaving, or CANCELLED   | restore      | PENDING_TRIGGER or OPEN: in the book, or leaving with the fill that |
 * | or CANCEL_PENDING_…     |              | closed the position, if that fill is not mined any more             |
 * | with POSITION_CLOSED    |              |                                                                     |
 *
 * Every other combination is refused and changes nothing.
 */

import type { Steps } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { isConditional, isRemainder, type Order, type OrderStatus, type StatusReason } from './order.ts'

export const TERMINAL_STATUSES = ['FILLED', 'CANCELLED', 'EXPIRED'] as const satisfies readonly OrderStatus[]
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number]

/** Reason why an order leaves the book, other than its last fill. */
export type ClosingReason = Exclude<StatusReason, 'FILLED'>

export interface OrderLife {
  readonly status: OrderStatus
  /** Set if and only if the status is terminal. */
  readonly statusReason: StatusReason | null
  readonly quantity: Steps
  /** Mined steps. */
  readonly filled: Steps
  /** Steps that are matched and not yet mined. */
  readonly settling: Steps
  /**
   * Set if the order has left the book and has not ended.
   * It is the final reason once the awaited settlement is mined, unless the settling steps fill the order.
   */
  readonly closingReason: ClosingReason | null
  /**
   * Id of the matched fill that closed the position of a reduce-only order, if the order left the book with
   * it.
   * Set only with the reason POSITION_CLOSED; kept after the order has ended.
   */
  readonly closedBy: string | null
}

export type TransitionInput =
  | { readonly kind: 'trigger' }
  /** The auction has filled `steps`. */
  | { readonly kind: 'match'; readonly steps: Steps }
  /** A receipt has confirmed `steps` matched steps. */
  | { readonly kind: 'settle'; readonly steps: Steps }
  /**
   * `steps` matched steps will not be mined. `ending`: the reason why the order cannot return to the book.
   * Null: the order returns at its old seq, unless it has been cancelled or has expired meanwhile.
   */
  | { readonly kind: 'void'; readonly steps: Steps; readonly ending: ClosingReason | null }
  /**
   * The block of `steps` mined steps has left the chain; `settling` of these steps wait to be mined again.
   */
  | { readonly kind: 'rollback'; readonly steps: Steps; readonly settling: Steps }
  /** The matched fill `closedBy` closed or turned the position that a reduce-only order reduces. */
  | { readonly kind: 'leave'; readonly closedBy: string }
  /**
   * The position is open again, because its closing fill is voided or rolled back. `waits`: not triggered yet.
   * `closedBy`: the fill to be mined again; null if the order is back in the book.
   */
  | { readonly kind: 'restore'; readonly waits: boolean; readonly closedBy: string | null }
  /** Ends the order. POSITION_CLOSED: the position has closed on chain. */
  | { readonly kind: 'close'; readonly reason: ClosingReason }

/**
 * Lifecycle events reported to traders; the contract with traders closes the list. A trigger is a detail of
 * the next event.
 */
export type OrderEventKind = 'CREATED' | 'PARTIALLY_FILLED' | TerminalStatus

/**
 * Settlement status of a fill. RETRYING: its block left the chain and the transaction is sent again. FAILED:
 * voided.
 */
export type FillStatus = 'MATCHED' | 'SUBMITTED' | 'MINED' | 'CONFIRMED' | 'RETRYING' | 'FAILED'

export interface OrderTransition<Life extends OrderLife = OrderLife> {
  readonly life: Life
  readonly events: readonly OrderEventKind[]
}

export type TransitionRefusal =
  /** The order has ended. A repeated cancel returns this status. */
  | { readonly code: 'ALREADY_ENDED'; readonly status: TerminalStatus }
  /** The order has left the book and waits for its settling fills. A repeated cancel returns this state. */
  | { readonly code: 'ALREADY_CLOSING'; readonly reason: ClosingReason }
  | { readonly code: 'NOT_WAITING' }
  | { readonly code: 'NOT_IN_BOOK' }
  | { readonly code: 'NOT_CLOSED_WITH_POSITION' }
  | { readonly code: 'TOO_MUCH'; readonly most: Steps }

type TransitionResult<Life extends OrderLife> = Verdict<OrderTransition<Life>, TransitionRefusal>

export const isTerminal = (status: OrderStatus): status is TerminalStatus =>
  status === 'FILLED' || status === 'CANCELLED' || status === 'EXPIRED'

/** Steps that the auction may still fill. */
export const unmatched = ({
  quantity,
  filled,
  settling,
}: Pick<OrderLife, 'quantity' | 'filled' | 'settling'>): Steps => (quantity - filled - settling) as Steps

/** Whether the order takes part in batches. */
export const isInBook = (
  life: Pick<OrderLife, 'status' | 'closingReason' | 'quantity' | 'filled' | 'settling'>,
): boolean => life.status === 'OPEN' && life.closingReason === null && unmatched(life) > 0

/** Whether the order waits for its trigger. */
export const isWaiting = ({ status, closingReason }: Pick<OrderLife, 'status' | 'closingReason'>): boolean =>
  status === 'PENDING_TRIGGER' && closingReason === null

/**
 * Whether the order has left the book with its position. It ends or returns together with the fill that
 * closed the position.
 */
export const isLeaving = ({ status, closingReason }: Pick<OrderLife, 'status' | 'closingReason'>): boolean =>
  closingReason === 'POSITION_CLOSED' && status !== 'CANCEL_PENDING_FINALIZE'

/** Whether a cancel or an expiry can still change how the order ends. */
export const isClosable = (life: Pick<OrderLife, 'status' | 'closingReason'>): boolean =>
  !isTerminal(life.status) && (life.closingReason === null || isLeaving(life))

/** State of an order at acceptance. Its event is CREATED. */
export const accepted = ({ type, quantity }: Pick<Order, 'type' | 'quantity'>): OrderLife => ({
  status: isConditional(type) ? 'PENDING_TRIGGER' : 'OPEN',
  statusReason: null,
  quantity,
  filled: 0 as Steps,
  settling: 0 as Steps,
  closingReason: null,
  closedBy: null,
})

/**
 * The order after a transition, or the reason why the transition is not allowed. Other fields of `life` are
 * copied.
 */
export function transition<Life extends OrderLife>(
  life: Life,
  input: TransitionInput,
): TransitionResult<Life> {
  if (input.kind === 'rollback') return rollback(life, input)
  if (input.kind === 'restore') return restore(life, input)
  if (isTerminal(life.status)) return refuse({ code: 'ALREADY_ENDED', status: life.status })
  switch (input.kind) {
    case 'trigger':
      return isWaiting(life) ? withoutEvents({ ...life, status: 'OPEN' }) : refuse({ code: 'NOT_WAITING' })
    case 'match':
      return match(life, input.steps)
    case 'settle':
      return settle(life, input.steps)
    case 'void':
      return voidMatch(life, input.steps, input.ending)
    case 'leave':
      return leave(life, input.closedBy)
    case 'close':
      return close(life, input.reason)
  }
}

/** Terminal status that belongs to a reason. */
export const statusFor = (reason: StatusReason): TerminalStatus => {
  if (reason === 'FILLED') return 'FILLED'
  return reason === 'EXPIRED' || reason === 'SIGNER_EXPIRED' ? 'EXPIRED' : 'CANCELLED'
}

const withoutEvents = <Life extends OrderLife>(life: Life): TransitionResult<Life> =>
  accept({ life, events: [] })

function match<Life extends OrderLife>(life: Life, steps: Steps): TransitionResult<Life> {
  if (!isInBook(life)) return refuse({ code: 'NOT_IN_BOOK' })
  if (steps > unmatched(life)) return refuse({ code: 'TOO_MUCH', most: unmatched(life) })
  return withoutEvents({ ...life, settling: (life.settling + steps) as Steps })
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
  // The voided fill had removed a remainder from the book; its reason no longer applies.
  const earlierReason = isRemainder(life.closingReason) ? null : life.closingReason
  if (isLeaving(life) && ending !== null) return close(returned, ending)
  return accept(endIfDue({ ...returned, closingReason: earlierReason ?? ending }))
}

function leave<Life extends OrderLife>(life: Life, closedBy: string): TransitionResult<Life> {
  if (life.closingReason !== null) return refuse({ code: 'ALREADY_CLOSING', reason: life.closingReason })
  if (!isInBook(life) && !isWaiting(life)) return refuse({ code: 'NOT_IN_BOOK' })
  return withoutEvents({ ...life, closingReason: 'POSITION_CLOSED', closedBy })
}

function close<Life extends OrderLife>(life: Life, reason: ClosingReason): TransitionResult<Life> {
  if (life.closingReason !== null && !isLeaving(life))
    return refuse({ code: 'ALREADY_CLOSING', reason: life.closingReason })
  if (life.settling === 0) return accept(ended(life, reason))
  // A remainder ends with its fills, in one event, because its owner did not cancel it.
  const status = isRemainder(reason) ? life.status : 'CANCEL_PENDING_FINALIZE'
  return withoutEvents({ ...life, status, closingReason: reason, closedBy: closedByFor(life, reason) })
}

function rollback<Life extends OrderLife>(
  life: Life,
  { steps, settling }: { readonly steps: Steps; readonly settling: Steps },
): TransitionResult<Life> {
  if (steps > life.filled || settling > steps) return refuse({ code: 'TOO_MUCH', most: life.filled })
  const before = settling > 0 || life.status === 'FILLED' ? reopened(life) : life
  const filled = (life.filled - steps) as Steps
  return withoutEvents({ ...before, filled, settling: (life.settling + settling) as Steps })
}

/**
 * An ended order in the state before its last receipt: it waits for that receipt again and ends with the same
 * reason.
 */
function reopened<Life extends OrderLife>(life: Life): Life {
  if (!isTerminal(life.status)) return life
  const reason = life.statusReason === 'FILLED' ? null : life.statusReason
  const isOpen = reason === null || isRemainder(reason)
  const status = isOpen ? 'OPEN' : 'CANCEL_PENDING_FINALIZE'
  return { ...life, status, statusReason: null, closingReason: reason }
}

function restore<Life extends OrderLife>(
  life: Life,
  { waits, closedBy }: { readonly waits: boolean; readonly closedBy: string | null },
): TransitionResult<Life> {
  if ((life.statusReason ?? life.closingReason) !== 'POSITION_CLOSED') {
    return refuse({ code: 'NOT_CLOSED_WITH_POSITION' })
  }
  return withoutEvents({
    ...life,
    status: waits ? 'PENDING_TRIGGER' : 'OPEN',
    statusReason: null,
    closingReason: closedBy === null ? null : 'POSITION_CLOSED',
    closedBy,
  })
}

function endIfDue<Life extends OrderLife>(life: Life): OrderTransition<Life> {
  const isDue = life.closingReason !== null && life.settling === 0 && !isLeaving(life)
  return isDue ? ended(life, life.closingReason) : { life, events: [] }
}

function ended<Life extends OrderLife>(life: Life, reason: StatusReason): OrderTransition<Life> {
  const status = statusFor(reason)
  const closedBy = closedByFor(life, reason)
  return { life: { ...life, status, statusReason: reason, closingReason: null, closedBy }, events: [status] }
}

/** Only POSITION_CLOSED keeps the fill: a rollback of the block that closed the position needs it. */
const closedByFor = ({ closedBy }: OrderLife, reason: StatusReason): string | null =>
  reason === 'POSITION_CLOSED' ? closedBy : null
