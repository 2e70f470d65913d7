/** Settings of operators: the exchange's own restriction, calendar, impact notional, price protection and fees. */
import { changeFees, type FeeChange, type FeeRefusal, toStoredFees } from '../../../market/fee-periods.ts'
import type { MarketKind, MarketMode } from '../../../market/market.ts'
import {
  announceWidth,
  isPriceProtection,
  MAX_PRICE_PROTECTION,
  type ProtectionSchedule,
} from '../../../market/price-protection.ts'
import type { CalendarName } from '../../../market/trading-calendar.ts'
import { type MarketId, type Millis, maxOf, type Quote, type Rate } from '../../../units.ts'
import type { Decider } from '../../decide.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { feeScheduleOf, marketTermsAt } from '../../market-terms.ts'
import type { MarketRow } from '../../tables/markets.ts'

export type OperatorSetting =
  /** Lifts the exchange's own restriction. The contract's mode is not affected. */
  | { readonly kind: 'reopen' }
  /** Null: the underlying trades around the clock. */
  | { readonly kind: 'calendar'; readonly calendar: CalendarName | null }
  /** Null: the default impact notional applies. */
  | { readonly kind: 'impact_notional'; readonly notional: Quote | null }
  /** Announced one day ahead. It replaces an announcement that is not in force yet. */
  | { readonly kind: 'protection'; readonly width: Rate }
  | { readonly kind: 'fees'; readonly change: FeeChange; readonly isDryRun: boolean }

export interface OperatorCommand {
  readonly kind: 'operator'
  readonly marketId: MarketId
  readonly setting: OperatorSetting
}

export type OperatorAnswer =
  /** `modeBefore` is set for `reopen`. */
  | { readonly kind: 'done'; readonly modeBefore?: MarketMode }
  | {
      readonly kind: 'refused'
      readonly refusal:
        | FeeRefusal
        | { readonly code: 'MARKET_NOT_FOUND'; readonly received: MarketId }
        | { readonly code: 'WIDTH_INVALID'; readonly received: Rate; readonly most: Rate }
    }

const DONE: OperatorAnswer = { kind: 'done' }

export const decideOperator: Decider<OperatorCommand, OperatorAnswer> = (draft, inputs, command) => {
  const { marketId, setting } = command
  const market = draft.state.markets.get(String(marketId))
  if (market === undefined)
    return { kind: 'refused', refusal: { code: 'MARKET_NOT_FOUND', received: marketId } }
  switch (setting.kind) {
    case 'reopen':
      return reopen(draft, marketId, market)
    case 'calendar':
      draft.write(marketId, { kind: 'calendar_set', calendar: setting.calendar })
      return DONE
    case 'impact_notional': {
      const notional = setting.notional === null ? null : setting.notional.toString()
      draft.write(marketId, { kind: 'impact_notional_set', notional })
      return DONE
    }
    case 'protection':
      return announceProtection(draft, inputs, { marketId, market, width: setting.width })
    case 'fees':
      return announceFees(draft, inputs, marketId, setting)
  }
}

function reopen(draft: Draft, marketId: MarketId, { mode }: MarketRow): OperatorAnswer {
  // A market that has ended keeps its mode.
  if (mode !== 'settled') draft.write(marketId, { kind: 'market_restricted', mode: 'open', why: 'operator' })
  return { kind: 'done', modeBefore: mode }
}

/**
 * Earliest time of a change. An auction's time may be ahead of the clock, and an already applied width or
 * rate stays in force.
 */
const settledTime = (draft: Draft, { now }: Inputs, marketId: MarketId): Millis =>
  maxOf(now, draft.state.progress.need(marketId).lastAsOf)

interface NewWidth {
  readonly marketId: MarketId
  readonly market: MarketRow
  readonly width: Rate
}

function announceProtection(
  draft: Draft,
  inputs: Inputs,
  { marketId, market, width }: NewWidth,
): OperatorAnswer {
  const kind = market.spec.kind as MarketKind
  if (!isPriceProtection(kind, width)) {
    const refusal = { code: 'WIDTH_INVALID', received: width, most: MAX_PRICE_PROTECTION[kind] } as const
    return { kind: 'refused', refusal }
  }
  const at = settledTime(draft, inputs, marketId)
  const { inForce, next } = announceWidth(protectionOf(market), width, at)
  draft.write(marketId, {
    kind: 'protection_announced',
    at,
    price_protection: inForce.toString(),
    next_price_protection: next.width.toString(),
    next_price_protection_at: next.at,
  })
  return DONE
}

const protectionOf = (market: MarketRow): ProtectionSchedule => ({
  inForce: BigInt(market.price_protection) as Rate,
  next:
    market.next_price_protection === null || market.next_price_protection_at === null
      ? null
      : {
          width: BigInt(market.next_price_protection) as Rate,
          at: market.next_price_protection_at as Millis,
        },
})

function announceFees(
  draft: Draft,
  inputs: Inputs,
  marketId: MarketId,
  { change, isDryRun }: { readonly change: FeeChange; readonly isDryRun: boolean },
): OperatorAnswer {
  const { state } = draft
  const at = settledTime(draft, inputs, marketId)
  const from = maxOf(change.from, at)
  const { spec } = marketTermsAt(state, marketId, from)
  const verdict = changeFees(spec, feeScheduleOf(state, marketId), { ...change, from }, at)
  if (!verdict.ok) return { kind: 'refused', refusal: verdict.refusal }
  if (!isDryRun)
    draft.write(marketId, { kind: 'fees_announced', at, fee_periods: toStoredFees(verdict.value) })
  return DONE
}
