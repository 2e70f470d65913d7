/**
 * Ends adjustment attempts with the block that executes them, and reopens them if the block leaves the chain.
 */
import type { LoggedFact, PositionAdjustedFact } from '../../../chain/facts.ts'
import type { LogUndecodable } from '../../../journal/chain-rows.ts'
import type { PositionsMoved } from '../../../journal/journal-row.ts'
import { expectationOf } from '../../../positions/adjustment-attempt.ts'
import { fromStored } from '../../../positions/stored-adjustment.ts'
import {
  type AttemptChange,
  changedAttempt,
  committedAttempt,
  mismatchedAttempt,
  reopenedAttempt,
  type StoredAttempt,
} from '../../../positions/stored-attempt.ts'
import { type Mismatch, NO_EVENTS } from '../../../settlement/receipt.ts'
import { reconcile } from '../../../settlement/reconcile.ts'
import type { MarketId, UserId } from '../../../units.ts'
import type { Draft } from '../../draft.ts'
import type { ExchangeState } from '../../state.ts'
import type { AttemptRow } from '../../tables/chain.ts'
import { blockTime, type FactContext, userOf } from './fact-context.ts'

const optionalWei = (wei: string | null): bigint | null => (wei === null ? null : BigInt(wei))

export const toStoredAttempt = (row: AttemptRow): StoredAttempt => ({
  ...row,
  hold: BigInt(row.hold),
  held: BigInt(row.held),
  pays: BigInt(row.pays),
  moved: optionalWei(row.moved),
  max_removable: optionalWei(row.max_removable),
})

export function changeAttempt(draft: Draft, attempt: AttemptRow, change: AttemptChange, at: number): void {
  const { row } = changedAttempt(toStoredAttempt(attempt), change, at)
  draft.write(attempt.market_id as MarketId, row)
}

/** The attempt sent with this transaction, or with the same nonce by another operator. */
function executedAttempt(
  state: ExchangeState,
  { spec: { marketId }, event }: PositionAdjustedFact,
  account: UserId,
  txHash: string,
): AttemptRow | undefined {
  const own = state.attemptIndex.of(marketId, account)
  const sent = own.find(({ tx_hash, relayer }) => tx_hash === txHash && relayer !== null)
  if (sent !== undefined) return sent
  return own
    .filter(({ nonce }) => BigInt(nonce) === event.nonce)
    .sort((a, b) => b.created_at - a.created_at)
    .at(0)
}

/**
 * Ends the attempt behind an adjustment event. `found`: first mismatch; undefined if no attempt is known. `after`
 * writes the attempt's end, once the caller has written the position move.
 */
export function endAdjustment(
  context: FactContext,
  fact: PositionAdjustedFact,
  { log, movesPositions }: { readonly log: LoggedFact['log']; readonly movesPositions: boolean },
): { readonly found: Mismatch | null | undefined; readonly after?: () => void } {
  const { draft, facts, gasUsed } = context
  const { state } = draft
  const { txHash } = log
  const attempt = executedAttempt(state, fact, userOf(context, fact.event.account), txHash)
  if (attempt === undefined) return { found: undefined }
  const adjusted = facts.flatMap((other) =>
    other.fact.kind === 'position_adjusted' &&
    other.log.txHash === txHash &&
    other.fact.spec.marketId === fact.spec.marketId
      ? [other.fact.event]
      : [],
  )
  const { adjustment } = fromStored(attempt.request)
  const { address } = state.users.need(attempt.user_id)
  const expected = expectationOf(adjustment, address, BigInt(attempt.nonce))
  const verdict = reconcile({ ...NO_EVENTS, adjusted, movesPositions }, expected)
  const change = verdict.ok
    ? committedAttempt(fact.event.amount, { txHash, gasUsed: gasUsed.get(txHash) ?? null })
    : mismatchedAttempt(verdict.refusal, txHash)
  return {
    found: verdict.ok ? null : verdict.refusal,
    after: () => changeAttempt(draft, attempt, change, blockTime(context)),
  }
}

/**
 * A log of the attempt's transaction cannot be decoded. Returns false if the transaction belongs to no attempt.
 */
export function failUndecodable(
  context: FactContext,
  { marketId, txHash }: { readonly marketId: MarketId; readonly txHash: string },
  reason: Mismatch,
): boolean {
  const { draft } = context
  const attempt = draft.state.attemptIndex.sentWith(marketId, txHash)
  if (attempt === undefined) return false
  changeAttempt(draft, attempt, mismatchedAttempt(reason, txHash), blockTime(context))
  return true
}

/** The adjustment's block left the chain; the same transaction is sent again. */
export function reopenAdjusted(draft: Draft, marketId: MarketId, row: PositionsMoved): void {
  const own = row.account === undefined ? [] : draft.state.attemptIndex.of(marketId, row.account)
  const executed = own.find(
    ({ tx_hash, status }) =>
      tx_hash === row.tx_hash && (status === 'COMMITTED' || status === 'RECEIPT_RECONCILIATION_FAILED'),
  )
  reopen(draft, executed ?? draft.state.attemptIndex.sentWith(marketId, row.tx_hash), row.at)
}

/** As `reopenAdjusted`, for an attempt that ended with an undecodable log. */
export function reopenFailed(draft: Draft, { market_id, tx_hash }: LogUndecodable, at: number): void {
  reopen(draft, draft.state.attemptIndex.sentWith(market_id, tx_hash), at)
}

function reopen(draft: Draft, attempt: AttemptRow | undefined, at: number): void {
  const change = attempt === undefined ? null : reopenedAttempt(toStoredAttempt(attempt))
  if (attempt !== undefined && change !== null) changeAttempt(draft, attempt, change, at)
}
