/** State of the twin of a market, and the errors by which it rejects a step. */

import type { Position } from '../../../domain/positions/position.ts'
import { type FundingRate, NO_RATE } from '../../../domain/prices/funding.ts'
import type { Haircut } from '../../../domain/risk/wind-down.ts'
import type { LedgerAccount } from '../../../domain/settlement/settlement-replay.ts'
import type { Address, FundingIndex, Millis, Price, Quote } from '../../../domain/units.ts'
import type { Verdict } from '../../../domain/verdict.ts'

export interface EndedMarket {
  readonly price: Price
  readonly pool: Quote
}

export interface Books {
  readonly positions: Map<Address, Position>
  readonly accounts: Map<Address, LedgerAccount>
  pool: bigint
  fees: bigint
  index: FundingIndex
  running: FundingRate
  asOf: Millis
  ended: EndedMarket | null
  deficit: bigint
  haircut: Haircut | null
  readonly unpaid: Map<Address, bigint>
}

/** The contract's error for each refusal code of domain/. */
const ERRORS: Readonly<Record<string, string>> = {
  NEGATIVE_PROCEEDS: 'ProceedsNegative',
  OUT_OF_RANGE: 'PositionOutOfRange',
  UNDER_MARGINED: 'MarginInsufficient',
  NO_POSITION: 'NoPosition',
  NOTHING_MOVES: 'NothingMoves',
  REMOVE_MODE: 'RemoveModeInvalid',
  ABOVE_REMOVABLE: 'RemovalTooLarge',
  BELOW_MINIMUM: 'AmountBelowMinimum',
  ADDITION_INSUFFICIENT: 'AdditionInsufficient',
  LEVERAGE_OUT_OF_RANGE: 'LeverageInvalid',
  MARGIN_IN_ABOVE_MAXIMUM: 'MarginInTooLarge',
  MARGIN_OUT_BELOW_MINIMUM: 'MarginOutTooSmall',
  RATE_OUT_OF_RANGE: 'FundingRateOutOfRange',
  VALIDITY: 'FundingValidityInvalid',
  NOT_PERPETUAL: 'NotPerpetual',
}

export const emptyBooks = (): Books => ({
  positions: new Map(),
  accounts: new Map(),
  pool: 0n,
  fees: 0n,
  index: 0n as FundingIndex,
  running: NO_RATE,
  asOf: 0 as Millis,
  ended: null,
  deficit: 0n,
  haircut: null,
  unpaid: new Map(),
})

/** Aborts a step; its changes are discarded. */
export class StepRefused extends Error {}

export function acceptedValue<Value>(verdict: Verdict<Value, { readonly code: string }>): Value {
  if (verdict.ok) return verdict.value
  throw new StepRefused(ERRORS[verdict.refusal.code] ?? verdict.refusal.code)
}

export function requireThat(holds: boolean, error: string): void {
  if (!holds) throw new StepRefused(error)
}
