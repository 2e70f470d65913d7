/**
 * Ends bracket orders that a decision has left without their cause, within the same decision.
 * Cancel, fill, expiry, void and liquidation therefore need no bracket rules of their own.
 */
import { invariant } from '../../invariant.ts'
import { type BracketEvents, bracketEnds, isExit, isUnmatched } from '../../orders/brackets.ts'
import { leaveBook } from '../../orders/open-order.ts'
import { acceptedSeq, orderIdOf } from '../../orders/order.ts'
import { isTerminal } from '../../orders/order-state.ts'
import type { MarketId, Millis } from '../../units.ts'
import { type Entry, marketIdOf } from '../apply.ts'
import { type BracketKey, bracketText } from '../bracket-index.ts'
import type { Draft } from '../draft.ts'
import type { ExchangeState } from '../state.ts'
import type { OrderRow } from '../tables/orders.ts'

/**
 * Writes the ending rows after the decision's rows. An ended order can end further orders, for example an
 * entry its exits.
 */
export function endBrackets(draft: Draft, now: Millis): void {
  for (let from = 0; from < draft.entries.length; ) {
    const touched = touchedBrackets(draft, from)
    from = draft.entries.length
    for (const one of touched) endBracket(draft, one, now)
  }
}

function endBracket(draft: Draft, { key, orders }: Touched, now: Millis): void {
  const { state } = draft
  const live = state.brackets
    .of(key)
    .map((accepted) => ({ ...state.orders.need(key.marketId, accepted), closedBy: null }))
  for (const { order, reason } of bracketEnds(live, eventsOf(state, key.marketId, orders)))
    end(draft, order, reason, now)
}

function end(
  draft: Draft,
  { marketId, accepted }: OrderRow,
  reason: Parameters<typeof leaveBook>[1],
  now: Millis,
): void {
  const orderId = orderIdOf(marketId, accepted)
  const order = draft.state.orders.need(marketId, accepted)
  const closedBy = draft.state.orderNotes.get(orderId)?.closedBy ?? null
  draft.write(marketId, leaveBook({ ...order, orderId, closedBy }, reason, now).row)
}

interface Touched {
  readonly key: BracketKey
  /** Acceptance sequences of its orders that the decision changed. */
  readonly orders: Set<number>
}

/** Brackets in which rows from `from` on may have ended, triggered, filled or returned an order. */
function touchedBrackets(draft: Draft, from: number): readonly Touched[] {
  const { entries, applied } = draft
  const touched = new Map<string, Touched>()
  // If the exchange has no bracket, no row is read.
  if (applied.brackets.size === 0 && !entries.some(placesInBracket)) return []
  for (const { shard, row } of entries.slice(from))
    for (const orderId of changedOrders(row)) {
      const marketId = marketIdOf(shard)
      const order = applied.orders.get(marketId, acceptedSeq(orderId)) ?? placedBy(entries, shard, orderId)
      if (order === undefined || order.bracket === 0) continue
      const key = { marketId, account: order.account, bracket: order.bracket }
      const text = bracketText(key)
      const known = touched.get(text) ?? { key, orders: new Set() }
      known.orders.add(acceptedSeq(orderId))
      touched.set(text, known)
    }
  return [...touched.values()]
}

const placesInBracket = ({ row }: Entry): boolean => row.kind === 'order_placed' && row.bracket !== undefined

function changedOrders(row: Entry['row']): readonly string[] {
  switch (row.kind) {
    case 'order_ended':
    case 'order_ending':
    case 'order_triggered':
      return [row.order_id]
    case 'batch_voided':
      return row.fills.map(({ order_id }) => order_id)
    case 'part_settled':
      return row.rollback ? [] : row.orders.map(({ order_id }) => order_id)
    default:
      return []
  }
}

/** Bracket of an order that this decision placed and has not applied yet. */
function placedBy(
  entries: readonly Entry[],
  shard: string,
  orderId: string,
): Pick<OrderRow, 'account' | 'bracket'> | undefined {
  const found = entries.find(
    (entry) => entry.shard === shard && entry.row.kind === 'order_placed' && entry.row.order_id === orderId,
  )?.row
  if (found === undefined) return undefined
  invariant(found.kind === 'order_placed', 'the row places the order')
  return { account: found.user_id as OrderRow['account'], bracket: found.bracket ?? 0 }
}

function eventsOf(state: ExchangeState, marketId: MarketId, accepted: ReadonlySet<number>): BracketEvents {
  const ended = [...accepted]
    .map((seq) => state.orders.get(marketId, seq))
    .filter((order) => order !== undefined && isTerminal(order.status)) as OrderRow[]
  return {
    hasFilledExit: ended.some((order) => isExit(order) && order.status === 'FILLED'),
    hasLostEntry: ended.some(
      (order) =>
        !isExit(order) && order.statusReason !== 'REPLACED' && isUnmatched({ ...order, closedBy: null }),
    ),
  }
}
