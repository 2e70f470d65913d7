/** Compares the events of a settled part with the sent part. */

import {
  type ExpectedFill,
  type Mismatch,
  type MismatchOrNull,
  mismatch,
  type PartExpectation,
  type ReceiptEvents,
} from './receipt.ts'
import type { BatchSettled, SettledFill } from './settlement.ts'

export const nothingSettled = (): Mismatch =>
  mismatch('no_trade_execution_events', 'the transaction succeeded without a BatchSettled event')

export const unexplained = (): Mismatch =>
  mismatch('trade_events_without_position_updates', 'the settled fills do not explain the positions')

const isOrder = (
  a: Pick<SettledFill, 'maker' | 'salt' | 'isForced'>,
  b: Pick<SettledFill, 'maker' | 'salt' | 'isForced'>,
): boolean => a.maker === b.maker && a.salt === b.salt && a.isForced === b.isForced

/** Compares a part's events with the matched and signed part. */
export function checkPart(
  { settled, movesPositions }: ReceiptEvents,
  expected: PartExpectation,
): MismatchOrNull {
  if (settled === null) return nothingSettled()
  if (!movesPositions) return unexplained()
  return (
    checkForced(settled, expected) ??
    checkFills(settled, expected) ??
    checkUnexpectedFills(settled, expected) ??
    checkTerms(settled, expected)
  )
}

/** Checks forced fills. They carry no trader's signature, so only the operator can cause a difference. */
function checkForced(settled: BatchSettled, expected: PartExpectation): MismatchOrNull {
  const kind = 'invalid_forced_book_liquidation_fill_coverage'
  const sent = expected.fills.filter(({ isForced }) => isForced)
  const actual = settled.fills.filter(({ isForced }) => isForced)
  for (const expectedFill of sent) {
    const fill = actual.find((each) => isOrder(each, expectedFill))
    if (fill === undefined)
      return mismatch(kind, `${expectedFill.maker}'s liquidation ${expectedFill.salt} was not filled`)
    const difference = differenceOf(fill, expectedFill)
    if (difference)
      return mismatch(kind, `${expectedFill.maker}'s liquidation ${expectedFill.salt} got ${difference}`)
  }
  const unexpected = actual.find((fill) => !sent.some((expectedFill) => isOrder(fill, expectedFill)))
  return unexpected
    ? mismatch(kind, `unexpected liquidation ${unexpected.salt} of ${unexpected.maker}`)
    : null
}

const differenceOf = (actual: SettledFill, expectedFill: ExpectedFill): string | null =>
  actual.side === expectedFill.side &&
  actual.fill === expectedFill.steps &&
  actual.taker === expectedFill.takerSteps
    ? null
    : `${actual.side} ${actual.fill} (taker ${actual.taker}), expected ${expectedFill.side} ${expectedFill.steps} (taker ${expectedFill.takerSteps})`

function checkFills(settled: BatchSettled, expected: PartExpectation): MismatchOrNull {
  const makers = new Set(settled.fills.map(({ maker }) => maker))
  const missing = expected.fills.find(({ maker }) => !makers.has(maker))
  if (missing)
    return mismatch('missing_expected_participants', `no fill for expected account ${missing.maker}`)
  for (const expectedFill of expected.fills) {
    const actual = settled.fills.find((fill) => isOrder(fill, expectedFill))
    if (actual === undefined) {
      return mismatch(
        'missing_expected_position_updates',
        `${expectedFill.maker}'s order ${expectedFill.salt} was not filled`,
      )
    }
    const difference = differenceOf(actual, expectedFill)
    if (difference) {
      return mismatch(
        'missing_expected_position_updates',
        `${expectedFill.maker}'s order ${expectedFill.salt} got ${difference}`,
      )
    }
  }
  return null
}

function checkUnexpectedFills(settled: BatchSettled, { fills }: PartExpectation): MismatchOrNull {
  const unexpected = settled.fills.find((fill) => !fills.some((expectedFill) => isOrder(fill, expectedFill)))
  if (unexpected === undefined) return null
  const order = `${unexpected.maker}'s order ${unexpected.salt}`
  return mismatch('invalid_batch_trade_participant_coverage', `${order} was not sent`)
}

function checkTerms(settled: BatchSettled, expected: PartExpectation): MismatchOrNull {
  const difference = termsDifference(settled, expected)
  return difference === null ? null : mismatch('invalid_batch_trade_participant_coverage', difference)
}

function termsDifference(settled: BatchSettled, expected: PartExpectation): string | null {
  const { actionId, price, asOf, parts } = expected
  if (actionId !== null && actionId !== settled.actionId) return `action ${settled.actionId}, not ${actionId}`
  if (settled.price !== price) return `price ${settled.price} ticks, not ${price}`
  if (settled.asOf !== asOf) return `asOf ${settled.asOf}, not ${asOf}`
  return settled.parts === parts ? null : `${settled.parts} parts, not ${parts}`
}
