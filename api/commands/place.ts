/** Decides one placement. */
import { toMarketTerms } from '../../db/terms.ts'
import type { OrderPlaced } from '../../domain/journal/journal-row.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import { type MarketSpec, tickStepValue } from '../../domain/market/market.ts'
import {
  type AdmissionInput,
  type AdmissionResult,
  admit,
  type RestingTotals,
} from '../../domain/orders/admission.ts'
import { aliveUntil, orderIdOf, type SignedOrder } from '../../domain/orders/order.ts'
import { leverageRefusal } from '../../domain/orders/order-request.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import { signerRefusal } from '../../domain/session-keys/session-key.ts'
import type { Millis, Price, Quote, Seconds, Seq, Steps } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import type { Placed, PlaceItem } from './command.ts'
import type { GroupChanges } from './group-changes.ts'
import type { Holding, StoredOrder } from './group-state.ts'
import { refusalError } from './parse-order.ts'
import { saltKey, signerKey } from './state-keys.ts'

export interface FreshnessLimits {
  readonly oracleMaxAgeMs: number
  readonly chainMaxAgeMs: number
}

const HALTED_RETRY = '5'
const STALE_RETRY = '1'

export const RETRY_AFTER: Readonly<Record<string, string>> = {
  MARKET_NOT_OPEN: HALTED_RETRY,
  ORACLE_STALE: STALE_RETRY,
}

/** Throws an ApiError if the placement is rejected. */
export function place(
  { order, spec, clientOrderId }: PlaceItem,
  userId: number,
  changes: GroupChanges,
  now: Millis,
  ages: FreshnessLimits,
): Placed {
  const { marketId } = order
  const known = changes.state.bySalt.get(saltKey(marketId, order.maker, order.salt))
  if (known !== undefined) return duplicate(order, known, changes)

  const keyExpiry = signerExpiry(order, changes, now)
  if (clientOrderId !== null) refuseUsedLabel(clientOrderId, userId, changes)
  const input = admissionInput(spec, userId, changes, now, ages)
  // The form was checked before the transaction, perhaps under other parameters.
  const capped = leverageRefusal(input.spec, order)
  if (capped !== null) throw refusalError(capped)
  const verdict = admit(order, input)
  if (!verdict.ok) throw refusalError(verdict.refusal, RETRY_AFTER[verdict.refusal.code])

  const row = {
    ...placedRow(order, verdict.value, userId, changes.nextSeq(marketId), now),
    alive_until: aliveUntil(order.expiration, keyExpiry),
    ...(clientOrderId !== null && { client_order_id: clientOrderId }),
  }
  const stored = storedOrder(order, row, changes.nextSeq(marketId))
  changes.place(stored, row)
  return placedResult(stored, false, changes)
}

const placedResult = (order: StoredOrder, isDuplicate: boolean, changes: GroupChanges): Placed => ({
  ...{ kind: 'placed', order, isDuplicate, read_after: changes.bookmark(order.market_id) },
  oracle: changes.market(order.market_id).oraclePrice as Price | null,
})

/** Expiry of the session key that signed; null if the maker signed. Throws if the key is unknown, revoked, expired or may not trade. */
function signerExpiry({ maker, signer }: SignedOrder, changes: GroupChanges, now: Millis): Seconds | null {
  if (signer === maker) return null
  const key = changes.state.signers.get(signerKey(maker, signer))
  const context = { field: 'signature', recovered_signer: signer, expected_signer: maker }
  if (key === undefined) throw new ApiError('SIGNATURE_MISMATCH', context)
  const refusal = signerRefusal(key, 'orders', now)
  if (refusal === null) return key.expires_at as Seconds
  const { code, ...more } = refusal
  throw new ApiError(code, { ...context, ...more })
}

/** The same signed order returns the existing order; another order with the same salt is an error. */
function duplicate(order: SignedOrder, known: StoredOrder, changes: GroupChanges): Placed {
  if (known.hash !== order.hash) {
    const context = {
      field: 'salt',
      received: String(order.salt),
      order_id: known.order_id,
      order_hash: known.hash,
    }
    throw new ApiError('SALT_USED', context)
  }
  return placedResult(known, true, changes)
}

/** A label is free again once its order has ended. */
function refuseUsedLabel(clientOrderId: string, userId: number, changes: GroupChanges): void {
  const live = changes.liveWithLabel(userId, clientOrderId)
  if (live === undefined) return
  throw new ApiError('CLIENT_ORDER_ID_USED', {
    ...{ field: 'client_order_id', received: clientOrderId },
    ...{ order_id: live.order_id, order_hash: live.hash },
  })
}

function restingOf(spec: MarketSpec, holding: Holding): RestingTotals {
  const { count, openable, openValue, ordersReserved, plainLong, plainShort, position } = holding
  const opposing = position.size > 0 ? plainShort : plainLong
  return {
    count,
    reducing: Math.min(Math.abs(position.size), opposing) as Steps,
    openable: openable as Steps,
    openNotional: (openValue * tickStepValue(spec)) as Quote,
    reserved: ordersReserved as Quote,
  }
}

/** The input of admission. Throws CHAIN_UNSEEN if the chain has not been read recently enough to accept orders. */
export function admissionInput(
  spec: MarketSpec,
  userId: number,
  changes: GroupChanges,
  now: Millis,
  ages: FreshnessLimits,
): AdmissionInput {
  const { chainSeenAt, oracleAt, oraclePrice, funding, ...market } = changes.market(spec.marketId)
  if (chainSeenAt === null || now - chainSeenAt > ages.chainMaxAgeMs) {
    throw new ApiError('CHAIN_UNSEEN', { last_seen_ms: chainSeenAt }, STALE_RETRY)
  }
  const terms = termsAt(spec, toMarketTerms(market.terms, spec), now)
  const maxAge = Math.min(ages.oracleMaxAgeMs, terms.reports?.maxAge ?? ages.oracleMaxAgeMs)
  const isFresh = oracleAt !== null && now - oracleAt <= maxAge
  const holding = changes.holding(spec.marketId, userId)
  const { free, reserved } = changes.funds(userId)
  return {
    spec: terms.reserving,
    mode: terms.mode,
    oracle: isFresh ? (oraclePrice as Price) : null,
    now,
    position: holding.position,
    fundingIndex: fundingIndexAt(funding, now),
    resting: restingOf(spec, holding),
    available: (free - reserved) as Quote,
  }
}

function placedRow(
  order: SignedOrder,
  admission: AdmissionResult,
  userId: number,
  seq: number,
  now: Millis,
): Omit<OrderPlaced, 'alive_until'> {
  return {
    kind: 'order_placed',
    order_id: orderIdOf(order.marketId, seq as Seq),
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
  }
}

const storedOrder = (
  { marketId, signature }: SignedOrder,
  { kind: _, ...row }: OrderPlaced,
  seq: number,
): StoredOrder => ({
  ...row,
  market_id: marketId,
  seq,
  signature,
  status_reason: null,
  closing_reason: null,
  closed_by: null,
  note: null,
  filled: 0,
  filled_value: 0n,
  settling: 0,
  held: 0n,
  fee: 0n,
  reserved: BigInt(row.reserved),
  partial_slot: null,
  protection_price: null,
  triggered: null,
  ended_at: null,
  forced: false,
  client_order_id: row.client_order_id ?? null,
  updated_at: row.accepted_at,
})
