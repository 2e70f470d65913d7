/**
 * Adjustment attempts on their way to the chain: signed, sent, or ended because they will not be mined.
 * Blocks end executed attempts.
 */
import { isInFlight } from '../../../positions/adjustment-attempt.ts'
import type { FailureKind } from '../../../settlement/receipt.ts'
import type { MarketId, Millis, Quote } from '../../../units.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import type { ExchangeState } from '../../state.ts'
import type { AttemptRow } from '../../tables/chain.ts'
import { changeAttempt } from './adjustments.ts'
import { signFirst } from './signatures.ts'

/** A transaction of an attempt; a worker has stored its bytes. */
export interface SignedAttempt {
  readonly adjustmentId: string
  readonly nonce: number
  readonly hash: string
  readonly asOf: Millis
  /** Maximum removal at the signed report; null if the attempt removes nothing. */
  readonly maxRemovable: Quote | null
}

/** Attempts of one market that the relayer signed, each with a nonce reserved for it. */
export interface AdjustmentsSigned {
  readonly kind: 'adjustments_signed'
  readonly marketId: MarketId
  readonly relayer: string
  readonly signatures: readonly SignedAttempt[]
}

/** Signed attempts of one market have been broadcast. */
export interface AdjustmentsSubmitted {
  readonly kind: 'adjustments_submitted'
  readonly marketId: MarketId
  readonly adjustmentIds: readonly string[]
}

/** The attempt will not be mined, or was mined without its event. */
export interface FailAdjustment {
  readonly kind: 'fail_adjustment'
  readonly marketId: MarketId
  readonly adjustmentId: string
  /**
   * Status on which the worker decided: an attempt signed since then must not fail for a missing signature.
   */
  readonly seen: 'PREPARED' | 'SIGNED' | 'SUBMITTED'
  readonly status: 'ABORTED' | 'RECEIPT_RECONCILIATION_FAILED'
  readonly failure: FailureKind | null
  readonly reason: string
}

export type AdjustmentLaneCommand = AdjustmentsSigned | AdjustmentsSubmitted | FailAdjustment

export type AdjustmentLaneAnswer =
  | { readonly kind: 'done' }
  /** Hashes of attempts that waited for a signature; these transactions may be sent. */
  | { readonly kind: 'hashes'; readonly hashes: readonly string[] }

export function decideAdjustmentLane(
  draft: Draft,
  inputs: Inputs,
  command: AdjustmentLaneCommand,
): AdjustmentLaneAnswer {
  switch (command.kind) {
    case 'adjustments_signed':
      return noteSigned(draft, inputs, command)
    case 'adjustments_submitted':
      return noteSubmitted(draft, inputs, command)
    case 'fail_adjustment':
      return fail(draft, inputs, command)
  }
}

function noteSigned(draft: Draft, inputs: Inputs, command: AdjustmentsSigned): AdjustmentLaneAnswer {
  const accepted = command.signatures.filter((signature) => sign(draft, inputs, command, signature))
  return { kind: 'hashes', hashes: accepted.map(({ hash }) => hash) }
}

/** Whether the transaction may be sent. Repeating an accepted signature writes no row. */
function sign(
  draft: Draft,
  inputs: Inputs,
  { marketId, relayer }: AdjustmentsSigned,
  { adjustmentId, nonce, hash, asOf, maxRemovable }: SignedAttempt,
): boolean {
  const attempt = attemptOf(draft.state, marketId, adjustmentId)
  if (attempt === undefined) return false
  if (attempt.status !== 'PREPARED') return isInFlight(attempt.status) && attempt.tx_hash === hash
  if (!signFirst(draft, inputs, { relayer, nonce, hash, purpose: 'adjustment' })) return false
  const signed = { as_of: asOf, relayer, relayer_nonce: nonce, tx_hash: hash, max_removable: maxRemovable }
  changeAttempt(draft, attempt, { status: 'SIGNED', ...signed }, inputs.now)
  return true
}

function noteSubmitted(
  draft: Draft,
  { now }: Inputs,
  { marketId, adjustmentIds }: AdjustmentsSubmitted,
): AdjustmentLaneAnswer {
  for (const id of adjustmentIds) {
    const attempt = attemptOf(draft.state, marketId, id)
    if (attempt?.status === 'SIGNED') changeAttempt(draft, attempt, { status: 'SUBMITTED' }, now)
  }
  return { kind: 'done' }
}

function fail(draft: Draft, { now }: Inputs, command: FailAdjustment): AdjustmentLaneAnswer {
  const { marketId, adjustmentId, seen, status, failure, reason } = command
  const attempt = attemptOf(draft.state, marketId, adjustmentId)
  if (attempt === undefined) return { kind: 'done' }
  const isAsSeen = seen === 'PREPARED' ? attempt.status === 'PREPARED' : isInFlight(attempt.status)
  if (isAsSeen) changeAttempt(draft, attempt, { status, failure_kind: failure, failure_reason: reason }, now)
  return { kind: 'done' }
}

function attemptOf(state: ExchangeState, marketId: MarketId, adjustmentId: string): AttemptRow | undefined {
  const attempt = state.attempts.get(adjustmentId)
  return attempt?.market_id === marketId ? attempt : undefined
}
