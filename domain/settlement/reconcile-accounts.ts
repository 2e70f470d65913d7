/**
 * Compares the events of adjustments, inheritances and deleveragings with the sent actions. Each action names
 * the accounts that it may change.
 */

import { invariant } from '../invariant.ts'
import type { Address } from '../units.ts'
import {
  type AdjustmentEvent,
  type AdjustmentExpectation,
  type DeleveragingExpectation,
  type InheritanceExpectation,
  type MismatchOrNull,
  mismatch,
  type ReceiptEvents,
} from './receipt.ts'
import { unexplained } from './reconcile-part.ts'

/** Finds expected accounts without a change, then changed accounts that were not expected. */
function checkCoverage(moved: readonly Address[], expected: readonly Address[]): MismatchOrNull {
  const missing = expected.find((account) => !moved.includes(account))
  if (missing) return mismatch('missing_expected_participants', `no change for expected account ${missing}`)
  const unexpected = moved.find((account) => !expected.includes(account))
  if (unexpected === undefined) return null
  return mismatch(
    'invalid_position_update_participant_coverage',
    `unexpected change for account ${unexpected}`,
  )
}

/**
 * Mismatch of the action id. `expected` is null if the action was signed elsewhere and its id is unknown here.
 */
const wrongAction = (expected: number | null, actionId: number): MismatchOrNull =>
  expected === null || expected === actionId
    ? null
    : mismatch('invalid_position_update_participant_coverage', `got action ${actionId}, expected ${expected}`)

export function checkAdjustment(
  { adjusted, movesPositions }: ReceiptEvents,
  expected: AdjustmentExpectation,
): MismatchOrNull {
  const { account, nonce, lowest, highest, leverage } = expected
  invariant(lowest <= highest, 'the bounds of an adjustment are ordered')
  if (adjusted.length === 0) {
    return mismatch(
      'no_account_adjustment_position_updates',
      'the transaction succeeded without an adjustment event',
    )
  }
  const accounts = adjusted.map((each) => each.account)
  const coverage = checkCoverage(accounts, [account])
  if (coverage) return coverage
  const [actual, second] = adjusted as readonly [AdjustmentEvent, ...AdjustmentEvent[]]
  if (second)
    return mismatch('invalid_position_update_participant_coverage', `${account} was adjusted more than once`)
  const missing = (reason: string) => mismatch('missing_expected_position_updates', reason)
  if (actual.nonce !== nonce) return missing(`got nonce ${actual.nonce}, expected ${nonce}`)
  if (actual.leverage !== leverage) return missing(`got leverage ${actual.leverage}, expected ${leverage}`)
  if (actual.amount < lowest || actual.amount > highest)
    return missing(`${actual.amount} wei moved, expected ${lowest} to ${highest}`)
  return movesPositions ? null : missing(`${account} did not have the margin that the event adds to`)
}

export function checkInheritance(events: ReceiptEvents, expected: InheritanceExpectation): MismatchOrNull {
  const { inherited, inheritanceFailed, movesPositions } = events
  const [failed] = inheritanceFailed
  if (inherited.length === 0 && failed) {
    const { reason, needed, available } = failed
    return mismatch('backstop_inheritance_failed_only', `${reason}: ${needed} needed, ${available} available`)
  }
  if (inherited.length === 0) {
    return mismatch(
      'no_liquidation_settlement_events',
      'the transaction succeeded without an inheritance event',
    )
  }
  const { account, backstop, actionId } = expected
  const moved = inherited.flatMap((event) => [event.account, event.backstop])
  const coverage =
    checkCoverage(moved, [account, backstop]) ?? wrongAction(actionId, inherited[0]?.actionId ?? 0)
  if (coverage) return coverage
  if (movesPositions) return null
  return mismatch(
    'missing_expected_position_updates',
    `${account} did not have the position that the backstop inherited`,
  )
}

export function checkDeleveraging(events: ReceiptEvents, expected: DeleveragingExpectation): MismatchOrNull {
  const { deleveraged, movesPositions } = events
  const [event] = deleveraged
  if (event === undefined) {
    return mismatch(
      'no_adl_settlement_events',
      'the transaction succeeded without a PositionsDeleveraged event',
    )
  }
  const closed = event.legs.filter(({ steps }) => steps > 0)
  if (closed.length === 0) {
    return mismatch('no_adl_trade_events', `no counterparty of ${event.account} qualified, so no leg closed`)
  }
  if (!movesPositions) return unexplained()
  const moved = [event.account, ...closed.map(({ counterparty }) => counterparty)]
  const { account, legs, actionId } = expected
  const participants = [account, ...legs.map(({ counterparty }) => counterparty)]
  const coverage = checkCoverage(moved, participants) ?? wrongAction(actionId, event.actionId)
  if (coverage) return coverage
  for (const expectedFill of legs) {
    const actual = closed.find(({ counterparty }) => counterparty === expectedFill.counterparty)
    if (actual?.steps === expectedFill.steps) continue
    const reason = `${expectedFill.counterparty} closed ${actual?.steps ?? 0} steps, expected ${expectedFill.steps}`
    return mismatch('missing_expected_position_updates', reason)
  }
  return null
}
