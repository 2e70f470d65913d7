/**
 * Compares the events of a mined transaction with what the operator sent it for, and returns the first mismatch. Pure. A mismatch does
 * not change how the events are applied: the caller records it, makes the market `cancel_only` and alerts an operator.
 */

import { invariant } from '../invariant.ts'
import type { Side } from '../orders/order.ts'
import type {
  BackstopInheritanceFailed,
  PositionInherited,
  PositionsDeleveraged,
} from '../risk/risk-replay.ts'
import type { Address } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import type { BatchSettled, SettledFill } from './settlement.ts'

/** Every `failure_kind` of the contract with traders. */
export type FailureKind =
  /** A log of the transaction cannot be decoded. */
  | 'receipt_decode_exception'
  /** A batch without a BatchSettled event. */
  | 'no_trade_execution_events'
  /** A batch or a deleveraging whose events do not explain the positions. */
  | 'trade_events_without_position_updates'
  /** A batch with an order or with terms that this operator did not send. */
  | 'invalid_batch_trade_participant_coverage'
  /** A batch whose liquidations differ from those that were sent. */
  | 'invalid_forced_book_liquidation_fill_coverage'
  /** An adjustment without its event. */
  | 'no_account_adjustment_position_updates'
  /** An inheritance by the backstop with neither a success nor a failure event. */
  | 'no_liquidation_settlement_events'
  /** An inheritance that failed. */
  | 'backstop_inheritance_failed_only'
  /** A deleveraging without its event. */
  | 'no_adl_settlement_events'
  /** A deleveraging that closed no steps. */
  | 'no_adl_trade_events'
  /** An expected account is missing. */
  | 'missing_expected_participants'
  /** An expected account is there, with other values than expected. */
  | 'missing_expected_position_updates'
  /** An inheritance, a deleveraging or an adjustment changed an unexpected account, or this operator did not send it. */
  | 'invalid_position_update_participant_coverage'

export interface Mismatch {
  readonly kind: FailureKind
  readonly reason: string
}

// ---------------------------------------------------------------------- events of the receipt

/** A margin or leverage change, from its event. */
export interface AdjustmentEvent {
  readonly account: Address
  readonly nonce: bigint
  /** Positive into the position, negative out of it. */
  readonly amount: bigint
  /** Null if only margin changed. */
  readonly leverage: number | null
}

/** The events of one transaction. */
export interface ReceiptEvents {
  /** Null if the transaction emitted none. */
  readonly settled: BatchSettled | null
  readonly adjusted: readonly AdjustmentEvent[]
  readonly inherited: readonly PositionInherited[]
  readonly inheritanceFailed: readonly BackstopInheritanceFailed[]
  readonly deleveraged: readonly PositionsDeleveraged[]
  /** Why a log cannot be decoded; null if all can. */
  readonly undecodable: string | null
  /** True if `domain/` derives the new positions from the events. */
  readonly movesPositions: boolean
}

export const NO_EVENTS: ReceiptEvents = {
  settled: null,
  adjusted: [],
  inherited: [],
  inheritanceFailed: [],
  deleveraged: [],
  undecodable: null,
  movesPositions: true,
}

// ---------------------------------------------------------------------- expectations

export interface ExpectedFill {
  readonly maker: Address
  /** The order's salt, or the number of a liquidation. */
  readonly salt: bigint
  readonly isForced: boolean
  readonly side: Side
  readonly steps: number
  readonly takerSteps: number
}

/** The part as it was matched and signed. */
export interface PartExpectation {
  readonly kind: 'part'
  readonly batchId: number
  readonly part: number
  readonly parts: number
  readonly price: number
  readonly asOf: number
  readonly actionId: number | null
  readonly fills: readonly ExpectedFill[]
}

export interface AdjustmentExpectation {
  readonly kind: 'adjustment'
  readonly account: Address
  readonly nonce: bigint
  /** Inclusive bounds of the amount; for an exact amount both are equal. */
  readonly lowest: bigint
  readonly highest: bigint
  readonly leverage: number | null
}

export interface InheritanceExpectation {
  readonly kind: 'inheritance'
  readonly actionId: number | null
  readonly account: Address
  readonly backstop: Address
}

export interface DeleveragingExpectation {
  readonly kind: 'deleveraging'
  readonly actionId: number | null
  readonly account: Address
  /** Steps that each counterparty should close. */
  readonly legs: readonly { readonly counterparty: Address; readonly steps: number }[]
}

export type Expectation =
  | PartExpectation
  | AdjustmentExpectation
  | InheritanceExpectation
  | DeleveragingExpectation

// ---------------------------------------------------------------------- verdict

type MismatchOrNull = Mismatch | null

const mismatch = (kind: FailureKind, reason: string): Mismatch => ({ kind, reason })

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
    default:
      return checkUnknown(events)
  }
}

/** For a transaction without an expectation. It is judged as a batch unless it has other events: settlements are the most frequent. */
function checkUnknown(events: ReceiptEvents): MismatchOrNull {
  const { settled, adjusted, inherited, inheritanceFailed, deleveraged, movesPositions } = events
  if (adjusted.length + inherited.length + inheritanceFailed.length + deleveraged.length > 0) {
    return mismatch('invalid_position_update_participant_coverage', 'this operator has not sent the action')
  }
  if (settled === null) return nothingSettled()
  return movesPositions
    ? mismatch('invalid_batch_trade_participant_coverage', 'this operator has not sent the part')
    : unexplained()
}

const nothingSettled = (): Mismatch =>
  mismatch('no_trade_execution_events', 'the transaction succeeded without a BatchSettled event')

const unexplained = (): Mismatch =>
  mismatch('trade_events_without_position_updates', 'the settled fills do not explain the positions')

/** Expected accounts without a change, then changed accounts that were not expected. */
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

const wrongAction = (expected: number | null, actionId: number): MismatchOrNull =>
  expected === null || expected === actionId
    ? null
    : mismatch('invalid_position_update_participant_coverage', `got action ${actionId}, expected ${expected}`)

// ---------------------------------------------------------------------- a batch

const isOrder = (
  a: Pick<SettledFill, 'maker' | 'salt' | 'isForced'>,
  b: Pick<SettledFill, 'maker' | 'salt' | 'isForced'>,
): boolean => a.maker === b.maker && a.salt === b.salt && a.isForced === b.isForced

function checkPart({ settled, movesPositions }: ReceiptEvents, expected: PartExpectation): MismatchOrNull {
  if (settled === null) return nothingSettled()
  if (!movesPositions) return unexplained()
  return (
    checkForced(settled, expected) ??
    checkFills(settled, expected) ??
    checkUnexpectedFills(settled, expected) ??
    checkTerms(settled, expected)
  )
}

/** Liquidations carry no trader's signature: only the operator can cause a difference. */
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

// ---------------------------------------------------------------------- an adjustment

function checkAdjustment({ adjusted }: ReceiptEvents, expected: AdjustmentExpectation): MismatchOrNull {
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
  if (actual.amount >= lowest && actual.amount <= highest) return null
  return missing(`${actual.amount} wei moved, expected ${lowest} to ${highest}`)
}

// ---------------------------------------------------------------------- backstop and deleveraging

function checkInheritance(events: ReceiptEvents, expected: InheritanceExpectation): MismatchOrNull {
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

function checkDeleveraging(events: ReceiptEvents, expected: DeleveragingExpectation): MismatchOrNull {
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
