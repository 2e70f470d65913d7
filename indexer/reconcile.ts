/**
 * Whether a mined transaction did what it was sent for. Pure: what its receipt says and what we expected, to a verdict. A mismatch
 * changes nothing of what the chain says; it stops the market and calls an operator.
 */

import type { Side } from '../domain/order.ts'
import type { BatchSettled } from '../domain/settlement.ts'
import type { Address } from '../domain/units.ts'
import { accept, refuse, type Verdict } from '../domain/verdict.ts'

/** The kinds of the contract with traders that a settlement can end in. */
export type SettlementFailure =
  | 'no_trade_execution_events'
  | 'trade_events_without_position_updates'
  | 'missing_expected_participants'
  | 'missing_expected_position_updates'
  | 'invalid_batch_trade_participant_coverage'
  | 'receipt_decode_exception'

export interface Mismatch {
  readonly kind: SettlementFailure
  readonly reason: string
}

/** What the transaction's logs say. */
export interface ReceiptEvents {
  /** Null where it emitted none. */
  readonly settled: BatchSettled | null
  /** Why a log of it cannot be read; null where all can. */
  readonly undecodable: string | null
  /** Whether positions follow from what it settled. */
  readonly movesPositions: boolean
}

export interface ExpectedFill {
  readonly maker: Address
  readonly salt: bigint
  readonly side: Side
  readonly steps: number
  readonly takerSteps: number
}

/** The part as it was matched and signed. */
export interface Expectation {
  readonly batchId: number
  readonly part: number
  readonly parts: number
  readonly price: number
  readonly asOf: number
  readonly actionId: number | null
  readonly fills: readonly ExpectedFill[]
}

const isOrder = (a: { maker: Address; salt: bigint }, b: { maker: Address; salt: bigint }): boolean =>
  a.maker === b.maker && a.salt === b.salt

/** `expected` is null where nobody here knows the part. */
export function reconcile(
  events: ReceiptEvents,
  expected: Expectation | null,
): Verdict<BatchSettled, Mismatch> {
  const { settled, undecodable, movesPositions } = events
  const no = (kind: SettlementFailure, reason: string) => refuse({ kind, reason })

  if (undecodable !== null) return no('receipt_decode_exception', undecodable)
  if (settled === null)
    return no('no_trade_execution_events', 'the transaction succeeded and settled nothing')
  if (!movesPositions) {
    return no('trade_events_without_position_updates', 'the positions do not follow from what was settled')
  }
  if (expected === null) {
    return no('invalid_batch_trade_participant_coverage', 'nobody here has sent this part')
  }
  return compare(settled, expected)
}

function compare(settled: BatchSettled, expected: Expectation): Verdict<BatchSettled, Mismatch> {
  const no = (kind: SettlementFailure, reason: string) => refuse({ kind, reason })
  const makers = new Set(settled.fills.map(({ maker }) => maker))
  const missing = expected.fills.find(({ maker }) => !makers.has(maker))
  if (missing) return no('missing_expected_participants', `nothing was settled for ${missing.maker}`)

  for (const want of expected.fills) {
    const got = settled.fills.find((fill) => isOrder(fill, want))
    if (got === undefined) {
      return no('missing_expected_position_updates', `${want.maker}'s order ${want.salt} was not filled`)
    }
    if (got.side !== want.side || got.fill !== want.steps || got.taker !== want.takerSteps) {
      const difference = `${got.side} ${got.fill} (taker ${got.taker}), not ${want.side} ${want.steps} (${want.takerSteps})`
      return no('missing_expected_position_updates', `${want.maker}'s order ${want.salt} got ${difference}`)
    }
  }
  const stranger = settled.fills.find((fill) => !expected.fills.some((want) => isOrder(fill, want)))
  if (stranger) {
    return no(
      'invalid_batch_trade_participant_coverage',
      `${stranger.maker}'s order ${stranger.salt} was not sent`,
    )
  }
  const head = headDifference(settled, expected)
  return head === null ? accept(settled) : no('invalid_batch_trade_participant_coverage', head)
}

function headDifference(settled: BatchSettled, expected: Expectation): string | null {
  const { actionId, price, asOf, parts } = expected
  if (actionId !== null && actionId !== settled.actionId) return `action ${settled.actionId}, not ${actionId}`
  if (settled.price !== price) return `price ${settled.price} ticks, not ${price}`
  if (settled.asOf !== asOf) return `as of ${settled.asOf}, not ${asOf}`
  return settled.parts === parts ? null : `${settled.parts} parts, not ${parts}`
}
