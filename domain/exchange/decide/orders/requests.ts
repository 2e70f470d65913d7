/** Commands with a `client_request_id`: a repeated command returns its stored result and is not executed again. */
import type {
  Json,
  RequestCompleted,
  StoredBookmark,
  StoredOrderState,
  StoredResult,
} from '../../../journal/request-rows.ts'
import { orderIdOf } from '../../../orders/order.ts'
import type { Millis, UserId } from '../../../units.ts'
import { ACCOUNTS } from '../../draft.ts'
import type { ExchangeState } from '../../state.ts'
import { keyOfRequest } from '../../tables/requests.ts'
import {
  type Bookmark,
  type Cancelled,
  type ClientRequest,
  type Done,
  type ItemRefusal,
  type ItemResult,
  type OrderFacts,
  type OrdersAnswer,
  type Placed,
  storedBalance,
} from './command.ts'
import { releasedUpTo } from './place.ts'

/** Answer of a command that was executed before; null: the command is new. */
export function knownRequest(
  state: ExchangeState,
  userId: UserId,
  { id, digest, absentUpTo }: ClientRequest,
): OrdersAnswer | null {
  const known = state.requests.get(keyOfRequest({ user_id: userId, client_request_id: id }))
  if (known !== undefined) {
    return known.digest === digest
      ? { kind: 'repeated', request: known }
      : { kind: 'refused', refusal: { code: 'CLIENT_REQUEST_REUSED', received: id } }
  }
  const released = releasedUpTo(state, ACCOUNTS)
  return (absentUpTo ?? 0) < released
    ? { kind: 'look_again', upTo: [{ marketId: ACCOUNTS, seq: released }] }
    : null
}

export const requestRow = (
  userId: UserId,
  { id, digest }: ClientRequest,
  { results, balance, readAfter }: Done,
  now: Millis,
): RequestCompleted => ({
  kind: 'request_completed',
  user_id: userId,
  client_request_id: id,
  digest,
  results: results.map(storedResult),
  balance: storedBalance(balance),
  read_after: storedBookmark(readAfter),
  at: now,
})

const storedBookmark = ({ marketId, seq }: Bookmark): StoredBookmark => ({ market_id: marketId, seq })

function storedResult(result: ItemResult): StoredResult {
  switch (result.kind) {
    case 'placed':
      return storedPlacement(result)
    case 'cancelled':
      return storedCancel(result)
    case 'refused':
      return { kind: 'refused', refusal: storedRefusal(result.refusal) }
    case 'answered':
      return result
  }
}

const storedPlacement = ({ facts, isDuplicate, oracle, readAfter }: Placed): StoredResult => ({
  kind: 'placed',
  is_duplicate: isDuplicate,
  order: storedOrder(facts),
  oracle: oracle === null ? null : oracle.toString(),
  read_after: storedBookmark(readAfter),
})

function storedCancel({ facts, ended, hash, cancelled, isDuplicate, readAfter }: Cancelled): StoredResult {
  const { marketId, accepted } = facts?.order ?? (ended as NonNullable<typeof ended>)
  return {
    kind: 'cancelled',
    is_duplicate: isDuplicate,
    cancelled,
    order_id: orderIdOf(marketId, accepted),
    hash,
    read_after: storedBookmark(readAfter),
  }
}

const storedOrder = ({ order, signature, note }: OrderFacts): StoredOrderState => ({
  order_id: orderIdOf(order.marketId, order.accepted),
  hash: signature.hash,
  status: order.status,
  status_reason: order.statusReason,
  closing_reason: order.closingReason,
  note: note?.note ?? null,
  filled: order.filled,
  settling: order.settling,
  openable: order.openable,
  reserved: order.reserved.toString(),
  held: order.held.toString(),
  ended_at: order.endedAt,
})

/** Refusals contain no bigint. Absent fields must not be stored as undefined. */
const storedRefusal = (refusal: ItemRefusal): Json =>
  Object.fromEntries(Object.entries(refusal).filter(([, value]) => value !== undefined)) as Json
