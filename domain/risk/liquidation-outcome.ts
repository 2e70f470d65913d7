/** Outcomes of the inheritances and deleveragings that liquidations have queued. */

/**
 * Outcome of a liquidation's last single action; null if no action is awaited.
 * `isOwn`: false if the action was dropped without an attempt, because an earlier batch was voided.
 */
export type ActionOutcome = 'pending' | 'done' | { readonly failed: string; readonly isOwn: boolean } | null

/**
 * Drop reason of a single action behind a voided batch: its decision assumed positions that did not materialise.
 */
export const BEHIND_VOID = 'behind a voided batch'

/** Outcome of a single action in the queue. */
export function actionOutcomeOf({
  status,
  failure,
}: {
  readonly status: string
  readonly failure: string | null
}): Exclude<ActionOutcome, null> {
  if (status === 'MINED') return failure === null ? 'done' : { failed: failure, isOwn: true }
  if (status === 'REVERTED' || status === 'VOIDED')
    return { failed: failure ?? 'dropped', isOwn: failure !== BEHIND_VOID }
  return 'pending'
}
