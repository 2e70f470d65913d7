/**
 * Compares a mined transaction's events with its expected receipt and returns the first mismatch. The caller applies
 * the events anyway, and restricts the market unless `isWithoutEffect`.
 */

import { accept, refuse, type Verdict } from '../verdict.ts'
import {
  type Expectation,
  type FinalPriceExpectation,
  type FundingExpectation,
  type Mismatch,
  type MismatchOrNull,
  mismatch,
  type ReceiptEvents,
} from './receipt.ts'
import { checkAdjustment, checkDeleveraging, checkInheritance } from './reconcile-accounts.ts'
import { checkPart, nothingSettled, unexplained } from './reconcile-part.ts'

/** `expected` is null if this database has no record of the transaction's purpose. */
export function reconcile(events: ReceiptEvents, expected: Expectation | null): Verdict<null, Mismatch> {
  const mismatch = mismatchOf(events, expected)
  return mismatch === null ? accept(null) : refuse(mismatch)
}

function mismatchOf(events: ReceiptEvents, expected: Expectation | null): MismatchOrNull {
  if (events.undecodable !== null) return mismatch('receipt_decode_exception', events.undecodable)
  switch (expected?.kind) {
    case 'part':
      return checkPart(events, expected)
    case 'adjustment':
      return checkAdjustment(events, expected)
    case 'inheritance':
      return checkInheritance(events, expected)
    case 'deleveraging':
      return checkDeleveraging(events, expected)
    case 'funding':
      return checkFunding(events, expected)
    case 'final_price':
      return checkFinalPrice(events, expected)
    default:
      return checkUnknown(events)
  }
}

/**
 * Checks a transaction without an expectation. It counts as a batch, the most frequent case, unless it has other events.
 */
function checkUnknown({ settled, movesPositions, ...others }: ReceiptEvents): MismatchOrNull {
  const { adjusted, inherited, inheritanceFailed, deleveraged, fundingUpdated, ended } = others
  const actions = [adjusted, inherited, inheritanceFailed, deleveraged, fundingUpdated, ended]
  if (actions.some(({ length }) => length > 0)) {
    return mismatch('invalid_position_update_participant_coverage', 'this operator has not sent the action')
  }
  if (settled === null) return nothingSettled()
  return movesPositions
    ? mismatch('invalid_batch_trade_participant_coverage', 'this operator has not sent the part')
    : unexplained()
}

function checkFunding({ fundingUpdated }: ReceiptEvents, expected: FundingExpectation): MismatchOrNull {
  const [event, second] = fundingUpdated
  if (event === undefined || second !== undefined) {
    const events = `${fundingUpdated.length} FundingUpdated events`
    return mismatch('no_funding_update_event', `the transaction succeeded with ${events}, expected 1`)
  }
  return (
    unexpectedTerm('action', event.actionId, expected.actionId) ??
    unexpectedTerm('rate', event.rate, expected.rate) ??
    unexpectedTerm('validUntil', event.validUntil, expected.validUntil)
  )
}

function checkFinalPrice({ ended }: ReceiptEvents, expected: FinalPriceExpectation): MismatchOrNull {
  const [event] = ended
  if (event?.how !== 'finalized') {
    return mismatch('no_final_price_event', 'the transaction succeeded without a MarketFinalized event')
  }
  return (
    unexpectedTerm('action', event.actionId, expected.actionId) ??
    unexpectedTerm('price', event.price, expected.price)
  )
}

/** Compares a term. `expected` is null if it is unknown here. */
const unexpectedTerm = (
  name: string,
  received: number | bigint,
  expected: number | bigint | null,
): MismatchOrNull =>
  expected === null || received === expected
    ? null
    : mismatch('unexpected_action_terms', `got ${name} ${received}, expected ${expected}`)
