/** Decides one cancel. Cancels are accepted in every state of market, oracle and chain. */
import { leaveBook } from '../../../orders/open-order.ts'
import { orderIdOf } from '../../../orders/order.ts'
import { type ClosingReason, isClosable, statusFor } from '../../../orders/order-state.ts'
import type { Millis, OrderHash, Quote, Seq, UserId } from '../../../units.ts'
import { endedNote, endedOrder } from '../../apply/orders.ts'
import type { Draft } from '../../draft.ts'
import type { ExchangeState } from '../../state.ts'
import type { OrderRow } from '../../tables/orders.ts'
import type {
  CancelItem,
  Cancelled,
  CancelRefusal,
  CancelTarget,
  EndedLookup,
  LookAgain,
  OrderFacts,
  Refused,
} from './command.ts'
import { factsOf } from './facts.ts'
import { releasedUpTo } from './place.ts'

const refused = (refusal: CancelRefusal): Refused => ({ kind: 'refused', refusal })

export interface CancelTerms {
  readonly userId: UserId
  readonly now: Millis
}

export function cancel(
  draft: Draft,
  { target, note }: CancelItem,
  terms: CancelTerms,
): Cancelled | Refused | LookAgain {
  const { state } = draft
  const order = sought(state, target, terms.userId)
  if (order !== undefined) {
    const facts = factsOf(state, order)
    return order.account === terms.userId
      ? cancelOwn(draft, facts, note, terms.now)
      : refused({ code: 'NOT_YOURS', hash: facts.signature.hash })
  }
  if ('label' in target) return refused({ code: 'ORDER_NOT_FOUND', target })
  return cancelEnded(state, target, terms.userId)
}

/** The order to cancel, if the state has it. */
export const sought = (
  { orderIndex }: ExchangeState,
  target: CancelTarget,
  userId: UserId,
): OrderRow | undefined =>
  'label' in target ? orderIndex.liveWithLabel(userId, target.label) : orderIndex.withHash(target.hash)

/** Cancels an order of the account, or states that it already ends. */
export function cancelOwn(
  draft: Draft,
  facts: OrderFacts,
  note: string | null,
  now: Millis,
): Cancelled | Refused {
  const { order } = facts
  if (order.forced) return refused({ code: 'ORDER_FORCED', hash: facts.signature.hash })
  if (isClosable(order)) return end(draft, facts, note, now)
  const cancelled = isCancelled(order)
  const seq = draft.lastSeq(order.marketId)
  return result(facts, cancelled, { isDuplicate: cancelled, seq, released: 0n as Quote })
}

function end(draft: Draft, facts: OrderFacts, note: string | null, now: Millis): Cancelled {
  const { order, signature } = facts
  const { marketId, accepted } = order
  const orderId = orderIdOf(marketId, accepted)
  const open = { ...order, orderId, closedBy: facts.note?.closedBy ?? null }
  const row = { ...leaveBook(open, 'USER_CANCELLED', now).row, note }
  const seq = draft.write(marketId, row)
  const after = endedOrder(order, seq, row)
  const noted = { ...endedNote(facts.note ?? undefined, row), triggered: facts.note?.triggered ?? null }
  const isEmpty = noted.note === null && noted.closedBy === null && noted.triggered === null
  const changed = { order: after, signature, note: isEmpty ? null : { orderId, ...noted } }
  return result(changed, isCancelled(after), { isDuplicate: false, seq, released: order.reserved })
}

const result = (
  facts: OrderFacts,
  cancelled: boolean,
  {
    isDuplicate,
    seq,
    released,
  }: { readonly isDuplicate: boolean; readonly seq: Seq; readonly released: Quote },
): Cancelled => ({
  kind: 'cancelled',
  facts,
  ended: null,
  hash: facts.signature.hash,
  cancelled,
  isDuplicate,
  released,
  readAfter: { marketId: facts.order.marketId, seq },
})

/** The order is cancelled, or will be once its batch has settled. */
function isCancelled({ status, closingReason }: OrderRow): boolean {
  const isEnding = status === 'CANCEL_PENDING_FINALIZE' && closingReason !== null
  return (isEnding ? statusFor(closingReason as ClosingReason) : status) === 'CANCELLED'
}

/** A cancel of an order that the state does not have: the order was released, or never existed. */
function cancelEnded(
  state: ExchangeState,
  { hash, ended }: { readonly hash: OrderHash; readonly ended: EndedLookup | null },
  userId: UserId,
): Cancelled | Refused | LookAgain {
  if (ended !== null && 'found' in ended) {
    const { found } = ended
    if (found.account !== userId) return refused({ code: 'NOT_YOURS', hash })
    if (found.forced) return refused({ code: 'ORDER_FORCED', hash })
    const cancelled = found.status === 'CANCELLED'
    const seq = state.heads.get(found.marketId)?.seq ?? (0 as Seq)
    return {
      kind: 'cancelled',
      facts: null,
      ended: found,
      hash,
      cancelled,
      isDuplicate: cancelled,
      released: 0n as Quote,
      readAfter: { marketId: found.marketId, seq },
    }
  }
  const missing = releasedBeyond(state, ended)
  if (missing.length > 0) return { kind: 'look_again', upTo: missing }
  return refused({ code: 'ORDER_NOT_FOUND', target: { hash } })
}

/** Markets with released orders that the api's search may have missed. */
export function releasedBeyond(state: ExchangeState, ended: EndedLookup | null): LookAgain['upTo'] {
  const absent = new Map(
    (ended !== null && 'absentUpTo' in ended ? ended.absentUpTo : []).map((at) => [at.marketId, at.seq]),
  )
  const released = [...state.heads.rows()].map(({ marketId }) => ({
    marketId,
    seq: releasedUpTo(state, marketId),
  }))
  return released.filter(({ marketId, seq }) => marketId !== 0 && seq > (absent.get(marketId) ?? 0))
}
