/** Applies one account's fills in one part to its position and free balance, as the contract does. */

import type { MarketSpec } from '../market/market.ts'
import { isHealthyAfterFills } from '../positions/margin.ts'
import {
  applyFill,
  type FillRefusal,
  type FillResult,
  type FillTerms,
  type Position,
  type PositionFill,
} from '../positions/position.ts'
import type { Price, Quote } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

export interface AccountSettlement {
  readonly position: Position
  /** Results in fill order. */
  readonly results: readonly FillResult[]
  readonly freeDelta: Quote
  readonly fee: Quote
}

export type AccountRefusal =
  | (FillRefusal & { readonly fill: number })
  /** The ratio is below IMR after the fills, and a fill opened or the ratio got worse. */
  | { readonly code: 'UNDER_MARGINED' }

/**
 * Applies the fills in tranche order and checks the margin ratio once, at the end. A refusal's `fill` is the index of
 * its fill. The bank, not this function, checks the free balance.
 */
export function settleAccount(
  spec: MarketSpec,
  position: Position,
  fills: readonly PositionFill[],
  terms: FillTerms & { readonly oracle: Price },
): Verdict<AccountSettlement, AccountRefusal> {
  const results: FillResult[] = []
  let after = position
  let freeDelta = 0n
  let fee = 0n
  let opened = false
  for (const [at, fill] of fills.entries()) {
    const verdict = applyFill(spec, after, fill, terms)
    if (!verdict.ok) return refuse({ ...verdict.refusal, fill: at })
    results.push(verdict.value)
    after = verdict.value.position
    freeDelta += verdict.value.freeDelta
    fee += verdict.value.fee
    opened ||= verdict.value.opened > 0
  }
  if (!isHealthyAfterFills(spec, { before: position, after, opened }, terms.fundingIndex, terms.oracle)) {
    return refuse({ code: 'UNDER_MARGINED' })
  }
  return accept({ position: after, results, freeDelta: freeDelta as Quote, fee: fee as Quote })
}
