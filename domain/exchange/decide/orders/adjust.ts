/**
 * Accepts an adjustment of margin or leverage. From then on the account takes part in no batch and no action of the market.
 */
import type { AdjustmentChanged } from '../../../journal/adjustment-row.ts'
import type { OrderEnded, OrderEnding } from '../../../journal/journal-row.ts'
import { leaveBook } from '../../../orders/open-order.ts'
import { orderIdOf } from '../../../orders/order.ts'
import { isClosable } from '../../../orders/order-state.ts'
import {
  type AdmissionRefusal,
  type AdmittedAdjustment,
  admitAdjustment,
  FAILURE_PAUSE,
} from '../../../positions/adjustment-admission.ts'
import { type AttemptStatus, isLeverage, kindOf } from '../../../positions/adjustment-attempt.ts'
import { type SignedAdjustment, toStored } from '../../../positions/stored-adjustment.ts'
import { type SignerRefusal, signerRefusal } from '../../../session-keys/session-key.ts'
import type { MarketId, Millis, Quote, UserId } from '../../../units.ts'
import type { Decider } from '../../decide.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { listedSpec, marketTermsAt } from '../../market-terms.ts'
import type { ExchangeState } from '../../state.ts'
import { keyOfLiquidation, keyOfNonce } from '../../tables/chain.ts'
import { nonceFloor } from '../chain/read.ts'
import type { PlaceRefusal, SignerMismatch } from './command.ts'
import { admissionInput } from './place.ts'
import { signingKey } from './relays.ts'

/** Maximum orders that a leverage change cancels; an account cannot have more in a market. */
const MOST_CANCELS = 500

export interface AdjustCommand {
  readonly kind: 'adjust'
  readonly userId: UserId
  readonly marketId: MarketId
  /** Digest of the signed message; it identifies the attempt. The api has checked the signature. */
  readonly digest: string
  readonly nonce: number
  readonly signed: SignedAdjustment
  /**
   * Whether a worker of the lane is alive. Without a worker no attempt is accepted, because an attempt keeps
   * its account out of batches.
   */
  readonly hasLane: boolean
}

export type AdjustRefusal =
  | { readonly code: 'USER_NOT_FOUND'; readonly received: UserId }
  | { readonly code: 'MARKET_NOT_FOUND'; readonly received: MarketId }
  | { readonly code: 'ADJUSTMENTS_UNAVAILABLE' }
  | { readonly code: 'ADJUSTMENT_IN_FLIGHT'; readonly adjustmentId: string; readonly status: AttemptStatus }
  | ({ readonly code: 'ADJUSTER_UNAUTHORIZED' } & SignerMismatch)
  | (SignerRefusal & SignerMismatch)
  | Extract<PlaceRefusal, { readonly code: 'CHAIN_UNSEEN' }>
  | AdmissionRefusal

export type AdjustAnswer =
  /** `isNew`: false for an attempt accepted earlier, regardless of its state. */
  | {
      readonly kind: 'accepted'
      readonly adjustmentId: string
      readonly status: AttemptStatus
      readonly isNew: boolean
    }
  | { readonly kind: 'refused'; readonly refusal: AdjustRefusal }

const refused = (refusal: AdjustRefusal): AdjustAnswer => ({ kind: 'refused', refusal })

export const decideAdjust: Decider<AdjustCommand, AdjustAnswer> = (draft, inputs, command) => {
  const { state } = draft
  const { userId, marketId, digest, signed, hasLane } = command
  if (!state.users.has(userId)) return refused({ code: 'USER_NOT_FOUND', received: userId })
  if (listedSpec(state, marketId) === undefined)
    return refused({ code: 'MARKET_NOT_FOUND', received: marketId })
  const known = state.attemptIndex.withDigest(marketId, digest)
  if (known !== undefined)
    return { kind: 'accepted', adjustmentId: known.adjustment_id, status: known.status, isNew: false }
  if (!hasLane) return refused({ code: 'ADJUSTMENTS_UNAVAILABLE' })
  const open = state.attemptIndex.inFlight(marketId, userId)
  if (open !== undefined)
    return refused({ code: 'ADJUSTMENT_IN_FLIGHT', adjustmentId: open.adjustment_id, status: open.status })
  const unauthorized = signerRefusalOf(state, command, inputs.now)
  if (unauthorized !== null) return refused(unauthorized)

  const cancels = isLeverage(signed.adjustment) ? cancelsOf(state, command, inputs.now) : []
  const admitted = admissionOf(state, inputs, command, cancels)
  return 'code' in admitted ? refused(admitted) : accept(draft, inputs.now, command, { admitted, cancels })
}

function signerRefusalOf(
  state: ExchangeState,
  { userId, signed: { signer } }: AdjustCommand,
  now: Millis,
): AdjustRefusal | null {
  const { address } = state.users.need(userId)
  if (signer === address) return null
  const context = { recovered: signer, expected: address }
  const key = signingKey(state, address, signer)
  if (key === null) return { code: 'ADJUSTER_UNAUTHORIZED', ...context }
  const refusal = signerRefusal(key, 'margin', now)
  return refusal && { ...refusal, ...context }
}

type CancelRow = OrderEnding | OrderEnded

/** Ends the account's live orders in the market. */
const cancelsOf = (state: ExchangeState, { marketId, userId }: AdjustCommand, now: Millis): CancelRow[] =>
  state.orderIndex
    .liveOf(marketId, userId)
    .filter((order) => isClosable(order) && !order.forced)
    .slice(0, MOST_CANCELS)
    .map((order) => {
      const orderId = orderIdOf(marketId, order.accepted)
      return leaveBook({ ...order, orderId, closedBy: null }, 'USER_CANCELLED', now).row
    })

function admissionOf(
  state: ExchangeState,
  inputs: Inputs,
  { marketId, userId, nonce, signed }: AdjustCommand,
  cancels: readonly CancelRow[],
): AdmittedAdjustment | AdjustRefusal {
  const input = admissionInput(state, inputs, marketId, userId)
  if (!input.ok) return input.refusal
  const { now } = inputs
  const { position, fundingIndex, oracle, available } = input.value
  const released = cancels.reduce((sum, { reserved_delta }) => sum - BigInt(reserved_delta), 0n)
  const { address } = state.users.need(userId)
  const failedAt = state.attemptIndex.failedAt(marketId, userId)
  const used = keyOfNonce({ market_id: marketId, user_id: userId, nonce: String(nonce) })
  const verdict = admitAdjustment({
    adjustment: signed.adjustment,
    deadline: signed.deadline,
    nonce,
    now,
    terms: marketTermsAt(state, marketId, now),
    position,
    fundingIndex,
    oracle,
    available: (available + released) as Quote,
    minimumNonce: nonceFloor(state, marketId, address),
    isNonceUsed: state.usedNonces.get(used) !== undefined,
    isLiquidating: state.liquidations.get(keyOfLiquidation(marketId, userId)) !== undefined,
    failedAt: failedAt !== null && failedAt > now - FAILURE_PAUSE ? (failedAt as Millis) : null,
  })
  return verdict.ok ? verdict.value : verdict.refusal
}

interface Acceptance {
  readonly admitted: AdmittedAdjustment
  readonly cancels: readonly CancelRow[]
}

function accept(
  draft: Draft,
  now: Millis,
  command: AdjustCommand,
  { admitted, cancels }: Acceptance,
): AdjustAnswer {
  const { marketId, userId, digest, nonce, signed } = command
  for (const row of cancels) draft.write(marketId, row)
  const adjustmentId = `adj-${marketId}-${draft.nextSeq(marketId)}`
  const request = toStored(signed)
  const row: AdjustmentChanged = {
    kind: 'adjustment_changed',
    adjustment_id: adjustmentId,
    user_id: userId,
    adjustment: kindOf(signed.adjustment),
    status: 'PREPARED',
    amount: request.amount ?? '0',
    new_leverage: request.leverage ?? null,
    tx_hash: null,
    failure_kind: null,
    failure_reason: null,
    reserved_delta: admitted.hold.toString(),
    created_at: now,
    at: now,
    request: {
      digest,
      nonce,
      request,
      hold: admitted.hold.toString(),
      pays: admitted.pays.toString(),
      cancelled_orders: cancels.length,
    },
  }
  draft.write(marketId, row)
  return { kind: 'accepted', adjustmentId, status: 'PREPARED', isNew: true }
}
