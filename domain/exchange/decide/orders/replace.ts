/** Decides one replacement: atomically ends an order and accepts another order in its place. */
import type { MarketSpec } from '../../../market/market.ts'
import { quantityOf } from '../../../market/market.ts'
import { leaveBook } from '../../../orders/open-order.ts'
import { orderIdOf } from '../../../orders/order.ts'
import { NO_FLAGS, type OrderFlags } from '../../../orders/order-flags.ts'
import { isClosable, unmatched } from '../../../orders/order-state.ts'
import { type OrderHash, type Quote, type Steps, toDecimal, type UserId } from '../../../units.ts'
import { endedNote, endedOrder } from '../../apply/orders.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { listedSpec } from '../../market-terms.ts'
import type { ExchangeState } from '../../state.ts'
import type { OrderRow } from '../../tables/orders.ts'
import { releasedBeyond, sought } from './cancel.ts'
import type {
  CancelTarget,
  LookAgain,
  OrderFacts,
  Placed,
  PlaceRefusal,
  Refused,
  Replaced,
  ReplaceItem,
  StandingOrder,
} from './command.ts'
import { factsOf, referenceOf } from './facts.ts'
import { knownOrder, placeNew } from './place.ts'

type Refusal = Refused['refusal']

const refused = (refusal: Refusal): Refused => ({ kind: 'refused', refusal })

/** `userId` must exist. */
export function replace(
  draft: Draft,
  inputs: Inputs,
  userId: UserId,
  item: ReplaceItem,
): Placed | Refused | LookAgain {
  const known = knownOrder(draft.state, inputs, userId, item)
  if (known?.kind === 'placed') return repeated(draft.state, known, item.target)
  if (known !== null) return known
  const target = targetOf(draft.state, userId, item)
  return 'kind' in target ? target : endAndPlace(draft, inputs, userId, { item, target })
}

/** The new order exists. The first answer is repeated if the order replaced the target named now. */
function repeated(state: ExchangeState, known: Placed, target: CancelTarget): Placed | Refused {
  const { order } = known.facts
  const { marketId, replaces } = order
  const mismatch = refused({ code: 'NOT_A_REPLACEMENT', order: referenceOf(state, order) })
  if (replaces === 0) return mismatch
  // A label has moved to the new order, perhaps further. A released order is known only by its acceptance sequence.
  const replaced = state.orders.get(marketId, replaces)
  if (replaced !== undefined && 'hash' in target && hashOf(state, replaced) !== target.hash) return mismatch
  return {
    ...known,
    replaced: { orderId: orderIdOf(marketId, replaces), facts: null, released: 0n as Quote },
  }
}

const hashOf = (state: ExchangeState, { marketId, accepted }: OrderRow): OrderHash =>
  state.signatures.need(marketId, accepted).hash

/** The order that the item replaces, or a refusal. */
function targetOf(
  state: ExchangeState,
  userId: UserId,
  { target, order, flags = NO_FLAGS, ifFilled }: ReplaceItem,
): OrderFacts | Refused | LookAgain {
  const old = sought(state, target, userId)
  if (old === undefined) return endedTarget(state, target, userId)
  const facts = factsOf(state, old)
  const { hash } = facts.signature
  if (old.account !== userId) return refused({ code: 'NOT_YOURS', hash })
  if (old.forced) return refused({ code: 'ORDER_FORCED', hash })
  const mismatch = mismatchOf(old, order, flags)
  if (mismatch !== null) return refused(mismatch)
  const standing = referenceOf(state, old)
  if (!isClosable(old) || unmatched(old) === 0)
    return refused({ code: 'ORDER_NOT_REPLACEABLE', order: standing, status: old.status })
  const filled = old.filled + old.settling
  if (filled > 0 && ifFilled === 'refuse') {
    const spec = listedSpec(state, old.marketId) as MarketSpec
    return refused({ code: 'ORDER_PARTLY_FILLED', order: standing, filled: decimalOf(spec, filled) })
  }
  return facts
}

function mismatchOf(old: OrderRow, order: ReplaceItem['order'], { bracket }: OrderFlags): Refusal | null {
  if (bracket !== undefined && old.bracket > 0 && bracket !== old.bracket)
    return {
      code: 'REPLACE_MISMATCH',
      field: 'bracket_id',
      expected: String(old.bracket),
      received: String(bracket),
    }
  if (old.marketId !== order.marketId)
    return {
      code: 'REPLACE_MISMATCH',
      field: 'market_id',
      expected: String(old.marketId),
      received: String(order.marketId),
    }
  if (old.side === order.side) return null
  return { code: 'REPLACE_MISMATCH', field: 'side', expected: old.side, received: order.side }
}

/** A target that the state does not have: it was released, or never existed. */
function endedTarget(state: ExchangeState, target: CancelTarget, userId: UserId): Refused | LookAgain {
  if ('label' in target) return refused({ code: 'ORDER_NOT_FOUND', target })
  const { hash, ended } = target
  if (ended !== null && 'found' in ended) {
    const { found } = ended
    if (found.account !== userId) return refused({ code: 'NOT_YOURS', hash })
    if (found.forced) return refused({ code: 'ORDER_FORCED', hash })
    const order: StandingOrder = { orderId: orderIdOf(found.marketId, found.accepted), hash }
    return refused({ code: 'ORDER_NOT_REPLACEABLE', order, status: found.status })
  }
  const missing = releasedBeyond(state, ended)
  if (missing.length > 0) return { kind: 'look_again', upTo: missing }
  return refused({ code: 'ORDER_NOT_FOUND', target: { hash } })
}

/**
 * Ends the order; its reservation then pays for the new order. A refusal of the new order rolls the end back.
 */
function endAndPlace(
  draft: Draft,
  inputs: Inputs,
  userId: UserId,
  { item, target }: { readonly item: ReplaceItem; readonly target: OrderFacts },
): Placed | Refused {
  const { order: old, signature } = target
  const unused = (item.ifFilled === 'reduce' ? old.unused + old.filled + old.settling : 0) as Steps
  const spec = listedSpec(draft.state, old.marketId) as MarketSpec
  if (unused >= item.order.quantity) return refused(tooSmall(spec, item, unused))
  return draft.attempt(
    (): Placed | Refused => {
      const replaced = end(draft, inputs, target)
      const clientOrderId = item.clientOrderId ?? signature.clientOrderId
      const placed = placeNew(
        draft,
        inputs,
        userId,
        { ...item, clientOrderId, flags: inBracket(item.flags ?? NO_FLAGS, old.bracket) },
        { replaces: old.accepted, unused },
      )
      if (placed.kind === 'placed') return { ...placed, replaced }
      const { code } = placed.refusal as PlaceRefusal
      return code === 'MIN_ORDER_SIZE' && unused > 0 ? refused(tooSmall(spec, item, unused)) : placed
    },
    ({ kind }) => kind === 'placed',
  )
}

/** The new order inherits the old order's bracket. */
const inBracket = (flags: OrderFlags, bracket: number): OrderFlags =>
  bracket === 0 ? flags : { ...flags, bracket }

function tooSmall(spec: MarketSpec, { order }: ReplaceItem, unused: Steps): Refusal {
  const least = decimalOf(spec, unused + spec.minQuantity)
  return {
    code: 'REDUCED_BELOW_MINIMUM',
    filled: decimalOf(spec, unused),
    expected: `at least ${least}: the filled quantity and the minimum order size`,
    received: decimalOf(spec, order.quantity),
    nearestValid: least,
  }
}

const decimalOf = (spec: MarketSpec, steps: number): string => toDecimal(quantityOf(spec, steps as Steps))

function end(draft: Draft, { now }: Inputs, { order, signature, note }: OrderFacts): Replaced {
  const { marketId, accepted } = order
  const orderId = orderIdOf(marketId, accepted)
  const { row } = leaveBook({ ...order, orderId, closedBy: note?.closedBy ?? null }, 'REPLACED', now)
  const seq = draft.write(marketId, row)
  const noted = { ...endedNote(note ?? undefined, row), triggered: note?.triggered ?? null }
  const isEmpty = noted.note === null && noted.closedBy === null && noted.triggered === null
  return {
    orderId,
    facts: {
      order: endedOrder(order, seq, row),
      signature,
      note: isEmpty ? null : { orderId, ...noted },
    },
    released: order.reserved,
  }
}
