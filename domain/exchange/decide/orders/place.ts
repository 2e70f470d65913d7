/** Decides one placement. */
import type { OrderPlaced } from '../../../journal/journal-row.ts'
import type { MarketSpec } from '../../../market/market.ts'
import { tickStepValue } from '../../../market/market.ts'
import {
  type AdmissionInput,
  type AdmissionResult,
  admit,
  type RestingTotals,
} from '../../../orders/admission.ts'
import { aliveUntil, orderIdOf, type SignedOrder } from '../../../orders/order.ts'
import { flagsRefusal, NO_FLAGS, type OrderFlags, sameFlags } from '../../../orders/order-flags.ts'
import { leverageRefusal } from '../../../orders/order-request.ts'
import { fundingIndexAt } from '../../../prices/funding-state.ts'
import { signerRefusal } from '../../../session-keys/session-key.ts'
import {
  type MarketId,
  minOf,
  type Quote,
  type Seconds,
  type Seq,
  type Steps,
  type UserId,
} from '../../../units.ts'
import { accept, refuse, type Verdict } from '../../../verdict.ts'
import { acceptedOrder, acceptedSignature } from '../../apply/orders.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { matchedOf } from '../../market-indexes.ts'
import { listedSpec, marketFunding, marketTermsAt } from '../../market-terms.ts'
import type { ExchangeState } from '../../state.ts'
import { flatPosition } from '../../tables/accounts.ts'
import type { OrderRow } from '../../tables/orders.ts'
import type { LookAgain, NewOrder, Placed, PlaceItem, PlaceRefusal, Refused } from './command.ts'
import { factsOf, referenceOf } from './facts.ts'
import { type Joined, joinBracket } from './join-bracket.ts'
import { takeRefusal } from './post-only.ts'
import { signingKey } from './relays.ts'

const refused = (refusal: PlaceRefusal): Refused => ({ kind: 'refused', refusal })

/** `userId` must exist. */
export function place(
  draft: Draft,
  inputs: Inputs,
  userId: UserId,
  item: PlaceItem,
): Placed | Refused | LookAgain {
  return (
    knownOrder(draft.state, inputs, userId, item) ?? placeNew(draft, inputs, userId, item, NOTHING_REPLACED)
  )
}

/** Answer for an order that the state has or that the api must look up; null: the order is new. */
export function knownOrder(
  state: ExchangeState,
  inputs: Inputs,
  userId: UserId,
  { order, flags = NO_FLAGS, absentUpTo }: NewOrder,
): Placed | Refused | LookAgain | null {
  const { marketId } = order
  if (listedSpec(state, marketId) === undefined)
    return refused({ code: 'MARKET_NOT_FOUND', received: marketId })
  const { address } = state.users.need(userId)
  if (order.maker !== address)
    return refused({ code: 'MAKER_MISMATCH', received: order.maker, expected: address })

  const known = state.orderIndex.withSalt(marketId, userId, Number(order.salt))
  if (known !== undefined) return duplicate(state, inputs, { order, flags, known })
  const released = releasedUpTo(state, marketId)
  return (absentUpTo ?? 0) < released ? { kind: 'look_again', upTo: [{ marketId, seq: released }] } : null
}

/** The order that a new order replaces; it has ended in the draft. */
export interface Replacing {
  /** Acceptance sequence of the replaced order; 0: none. */
  readonly replaces: Seq
  /** Signed steps that the new order must not fill; less than its signed steps. */
  readonly unused: Steps
}

const NOTHING_REPLACED: Replacing = { replaces: 0 as Seq, unused: 0 as Steps }

/** Decides a new order. */
export function placeNew(
  draft: Draft,
  inputs: Inputs,
  userId: UserId,
  { order: signed, clientOrderId, flags = NO_FLAGS }: NewOrder,
  replacing: Replacing,
): Placed | Refused {
  const { state } = draft
  const { marketId } = signed
  const order = { ...signed, quantity: (signed.quantity - replacing.unused) as Steps }
  const signer = signerExpiry(state, inputs, order)
  if (!signer.ok) return refused(signer.refusal)
  const labelled = clientOrderId === null ? undefined : state.orderIndex.liveWithLabel(userId, clientOrderId)
  if (labelled !== undefined) {
    const standing = referenceOf(state, labelled)
    return refused({ code: 'CLIENT_ORDER_ID_USED', received: clientOrderId as string, order: standing })
  }
  const input = admissionInput(state, inputs, marketId, userId)
  if (!input.ok) return refused(input.refusal)
  // The api checked the form before the command was sent, perhaps under earlier parameters.
  const capped = leverageRefusal(input.value.spec, order)
  if (capped !== null) return refused({ ...capped, code: 'LEVERAGE_CAP' })
  const flagged = flagsRefusal(order, flags)
  if (flagged !== null) return refused(flagged)
  const admission = admit(order, input.value)
  if (!admission.ok) return refused(admission.refusal)
  const joined = joinBracket(state, order, {
    account: userId,
    bracket: flags.bracket ?? 0,
    isReplacement: replacing.replaces > 0,
  })
  if (!joined.ok) return refused(joined.refusal)
  const taking = flags.postOnly ? takeRefusal(input.value.spec, order, state.books.of(marketId)) : null
  if (taking !== null) return refused(taking)
  const terms = { userId, clientOrderId, keyExpiry: signer.value, flags, ...replacing, ...joined.value }
  return placed(draft, inputs, order, admission.value, terms)
}

/** Row of the market, or of the accounts, up to which ended orders or requests have left the state. */
export const releasedUpTo = (state: ExchangeState, marketId: MarketId): Seq =>
  state.heads.get(marketId)?.releasedUpTo ?? (0 as Seq)

function placed(
  draft: Draft,
  inputs: Inputs,
  order: SignedOrder,
  admission: AdmissionResult,
  terms: PlacementTerms,
): Placed {
  const { marketId } = order
  const position = positionFor(draft.state, order, terms.userId)
  const row = placedRow(order, admission, terms, { seq: draft.nextSeq(marketId), now: inputs.now })
  return {
    kind: 'placed',
    facts: {
      order: acceptedOrder(marketId, row),
      signature: acceptedSignature(marketId, row),
      note: null,
    },
    isDuplicate: false,
    oracle: inputs.report(marketId)?.price ?? null,
    ...position,
    readAfter: { marketId, seq: draft.write(marketId, row) },
  }
}

/** Matched position for a reduce-only order. */
const positionFor = (
  state: ExchangeState,
  { marketId, reduceOnly }: SignedOrder,
  account: UserId,
): Pick<Placed, 'position'> =>
  reduceOnly ? { position: (state.positions.get(account, marketId)?.matchedSize ?? 0) as Steps } : {}

/** The same signed order returns the existing order; another order with the same salt is refused. */
function duplicate(
  state: ExchangeState,
  inputs: Inputs,
  {
    order,
    flags,
    known,
  }: { readonly order: SignedOrder; readonly flags: OrderFlags; readonly known: OrderRow },
): Placed | Refused {
  const { marketId } = order
  const facts = factsOf(state, known)
  if (facts.signature.hash !== order.hash)
    return refused({ code: 'SALT_USED', received: String(order.salt), order: referenceOf(state, known) })
  const { timeInForce, postOnly, bracket } = known
  // A replacement may have inherited its bracket from the replaced order.
  const sent = known.replaces > 0 && flags.bracket === undefined ? { ...flags, bracket } : flags
  const { builder } = facts.signature
  const expected = {
    timeInForce,
    postOnly,
    ...(bracket > 0 && { bracket }),
    ...(builder !== null && { builder }),
  }
  if (!sameFlags(sent, expected))
    return refused({
      code: 'ORDER_FLAGS_DIFFER',
      received: flags,
      expected,
      order: referenceOf(state, known),
    })
  return {
    kind: 'placed',
    facts,
    isDuplicate: true,
    oracle: inputs.report(marketId)?.price ?? null,
    ...positionFor(state, order, known.account),
    readAfter: { marketId, seq: state.heads.need(marketId).seq },
  }
}

/** Expiry of the signing session key; null if the maker signed. */
function signerExpiry(
  state: ExchangeState,
  { now }: Inputs,
  { maker, signer }: SignedOrder,
): Verdict<Seconds | null, PlaceRefusal> {
  if (signer === maker) return accept(null)
  const context = { recovered: signer, expected: maker }
  const key = signingKey(state, maker, signer)
  if (key === null) return refuse({ code: 'SIGNATURE_MISMATCH', ...context })
  const refusal = signerRefusal(key, 'orders', now)
  return refusal === null ? accept(key.expires_at as Seconds) : refuse({ ...refusal, ...context })
}

/** Admission input of the order; refused if the chain was last read too long ago. */
export function admissionInput(
  state: ExchangeState,
  inputs: Inputs,
  marketId: MarketId,
  account: UserId,
): Verdict<AdmissionInput, Extract<PlaceRefusal, { readonly code: 'CHAIN_UNSEEN' }>> {
  const { now, chainSeenAt, limits } = inputs
  if (chainSeenAt === null || now - chainSeenAt > limits.chainMaxAgeMs)
    return refuse({ code: 'CHAIN_UNSEEN', lastSeen: chainSeenAt })
  const terms = marketTermsAt(state, marketId, now)
  const report = inputs.report(marketId)
  const maxAge = minOf(limits.oracleMaxAgeMs, terms.reports?.maxAge ?? limits.oracleMaxAgeMs)
  const isFresh = report !== null && now - report.observedAt <= maxAge
  const row = state.positions.get(account, marketId) ?? flatPosition(account, marketId)
  const { free, reserved } = state.accounts.need(account)
  return accept({
    spec: terms.reserving,
    mode: terms.mode,
    oracle: isFresh ? report.price : null,
    now,
    position: matchedOf(row),
    fundingIndex: fundingIndexAt(marketFunding(state, marketId), now),
    resting: restingTotals(state, terms.reserving, account, row.matchedSize),
    available: (free - reserved) as Quote,
  })
}

function restingTotals(
  { exposures }: ExchangeState,
  spec: MarketSpec,
  account: UserId,
  size: Steps,
): RestingTotals {
  const sums = exposures.of(spec.marketId, account)
  const opposing = size > 0 ? sums.plainShort : sums.plainLong
  return {
    count: sums.orders,
    reducing: minOf(Math.abs(size), opposing) as Steps,
    openable: sums.openable as Steps,
    openNotional: (sums.openValue * tickStepValue(spec)) as Quote,
    reserved: sums.reserved as Quote,
  }
}

interface PlacementTerms extends Replacing, Joined {
  readonly userId: UserId
  readonly clientOrderId: string | null
  readonly keyExpiry: Seconds | null
  readonly flags: OrderFlags
}

function placedRow(
  order: SignedOrder,
  admission: AdmissionResult,
  { userId, clientOrderId, keyExpiry, flags, replaces, unused, bracket, dormant }: PlacementTerms,
  { seq, now }: { readonly seq: Seq; readonly now: number },
): OrderPlaced & { readonly v?: number } {
  const isOfVersion2 = !sameFlags(flags, NO_FLAGS) || replaces > 0
  const withoutBuilder = bracket > 0 ? 3 : isOfVersion2 ? 2 : 1
  const version = flags.builder === undefined ? withoutBuilder : 4
  return {
    kind: 'order_placed',
    order_id: orderIdOf(order.marketId, seq),
    user_id: userId,
    maker: order.maker,
    signer: order.signer,
    hash: order.hash,
    salt: Number(order.salt),
    side: order.side,
    type: order.type,
    price: order.price,
    quantity: order.quantity,
    trigger: order.trigger,
    leverage: order.leverage,
    reduce_only: order.reduceOnly,
    expiration: order.expiration,
    status: admission.status,
    accepted_at: now,
    openable: admission.openable,
    reserved: admission.reserved.toString(),
    reserved_price: admission.reservedPrice,
    signature: order.signature,
    alive_until: aliveUntil(order.expiration, keyExpiry),
    ...(clientOrderId !== null && { client_order_id: clientOrderId }),
    ...(flags.timeInForce !== 'gtc' && { time_in_force: flags.timeInForce }),
    ...(flags.postOnly && { post_only: true as const }),
    ...(unused > 0 && { unused }),
    ...(replaces > 0 && { replaces: orderIdOf(order.marketId, replaces) }),
    ...(bracket > 0 && { bracket }),
    ...(dormant && { dormant }),
    ...(flags.builder !== undefined && { builder: flags.builder }),
    ...(version > 1 && { v: version }),
  }
}
