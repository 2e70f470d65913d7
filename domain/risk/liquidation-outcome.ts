/** Outcomes of the inheritances and deleveragings that liquidations have queued. */

/**
 * Outcome of a liquidation's last single action; null if it waits for none. `isOwn`: false if it was dropped because a batch before it
 * was voided: then it has not been tried.
 */
export type ActionOutcome = 'pending' | 'done' | { readonly failed: string; readonly isOwn: boolean } | null

/** Why a single action behind a voided batch is dropped: it was decided on positions that have not come about. */
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
