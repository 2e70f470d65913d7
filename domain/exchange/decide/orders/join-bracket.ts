/** Decides whether a new order may join its bracket, and whether it waits there for the entry. */
import { bracketRole, isExit, isUnmatched } from '../../../orders/brackets.ts'
import type { SignedOrder } from '../../../orders/order.ts'
import { isClosable } from '../../../orders/order-state.ts'
import type { UserId } from '../../../units.ts'
import { accept, refuse, type Verdict } from '../../../verdict.ts'
import type { ExchangeState } from '../../state.ts'
import type { OrderRow } from '../../tables/orders.ts'
import type { PlaceRefusal } from './command.ts'
import { referenceOf } from './facts.ts'

type BracketRefusal = Extract<PlaceRefusal, { readonly code: 'BRACKET_TAKEN' | 'BRACKET_MISMATCH' }>

interface Joining {
  readonly account: UserId
  /** Bracket number; 0: none. */
  readonly bracket: number
  /** True if the replaced order has left its role to the new order. */
  readonly isReplacement: boolean
}

export interface Joined {
  readonly bracket: number
  /** True for an exit whose entry has not matched yet. */
  readonly dormant: boolean
}

export function joinBracket(
  state: ExchangeState,
  order: SignedOrder,
  { account, bracket, isReplacement }: Joining,
): Verdict<Joined, BracketRefusal> {
  if (bracket === 0) return accept({ bracket, dormant: false })
  const members = state.brackets
    .of({ marketId: order.marketId, account, bracket })
    .map((accepted) => state.orders.need(order.marketId, accepted))
  const open = members.filter(isClosable)
  const role = bracketRole(order)
  const first = role === 'entry' && !isReplacement ? open[0] : undefined
  const taken = open.find((member) => bracketRole(member) === role) ?? first
  if (taken !== undefined && role !== null)
    return refuse({ code: 'BRACKET_TAKEN', received: bracket, role, order: referenceOf(state, taken) })
  const other = open.find((member) => sideBeside(member, order) !== order.side)
  if (other !== undefined)
    return refuse({
      code: 'BRACKET_MISMATCH',
      received: order.side,
      expected: sideBeside(other, order),
      order: referenceOf(state, other),
    })
  const entry = open.find((member) => !isExit(member))
  const dormant = isExit(order) && entry !== undefined && isUnmatched({ ...entry, closedBy: null })
  return accept({ bracket, dormant })
}

/** Side that an order must have beside a bracket member. */
function sideBeside(member: OrderRow, order: SignedOrder): OrderRow['side'] {
  if (isExit(member) === isExit(order)) return member.side
  return member.side === 'LONG' ? 'SHORT' : 'LONG'
}
