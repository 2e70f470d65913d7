/** Converts a market's specification and state to its JSON form. */

import { type ProtectionColumns, toSchedule } from '../../db/price-protection.ts'
import { type TermsColumns, toMarketTerms } from '../../db/terms.ts'
import type { TradingCalendars } from '../../db/trading-calendars.ts'
import { priceBand } from '../../domain/market/band.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import { scheduleAt } from '../../domain/market/price-protection.ts'
import type { CalendarName } from '../../domain/market/trading-calendar.ts'
import type { EndingColumns } from '../../domain/risk/stored-ending.ts'
import type { Millis, Price, Ticks } from '../../domain/units.ts'
import { amount, isoTime, maybeAmount, maybeTime } from '../wire/amounts.ts'
import { endingView } from './ending.ts'
import { feesView } from './fees.ts'
import { type FundingColumns, fundingView } from './funding.ts'
import { type OracleColumns, oracleView } from './oracle.ts'
import type { Market } from './schema.ts'
import { sessionView } from './session.ts'
import { upcomingView } from './upcoming-change.ts'

export interface MarketState
  extends ProtectionColumns,
    TermsColumns,
    EndingColumns,
    FundingColumns,
    OracleColumns {
  readonly calendar: CalendarName | null
  readonly oracle_at: number | null
  readonly mark_price: bigint | null
  readonly last_price: number | null
  readonly last_batch_id: number | null
}

export interface ReadTime {
  readonly now: Millis
  /** Age beyond which the latest report counts as stale. */
  readonly oracleMaxAgeMs: number
}

function bandView(spec: MarketSpec, oracle: bigint | null): Market['price_band'] {
  if (oracle === null) return null
  const { lo, hi } = priceBand(spec, oracle as Price)
  return { ...amount('lowest', priceOf(spec, lo)), ...amount('highest', priceOf(spec, hi)) }
}

/**
 * `now` decides whether an announced price protection is in force, and whether the market and its session are closed.
 */
export function marketView(
  spec: MarketSpec,
  state: MarketState,
  calendars: TradingCalendars,
  { now, oracleMaxAgeMs }: ReadTime,
): Market {
  const { inForce, next } = scheduleAt(toSchedule(state), now)
  const terms = toMarketTerms(state, spec)
  const { mode, charging, spec: current } = termsAt(spec, terms, now)
  const calendar = state.calendar && calendars[state.calendar]
  return {
    market_id: spec.marketId,
    symbol: spec.symbol,
    type: spec.kind,
    trading_enabled: mode === 'open',
    mode,
    ...endingView(state),
    ...sessionView(calendar, now),
    chain_id: Number(spec.chainId),
    trader_address: spec.trader,
    ...amount('tick_size', spec.tick),
    ...amount('step_size', spec.step),
    ...amount('min_order_size', quantityOf(spec, spec.minQuantity)),
    ...amount('max_order_size', quantityOf(spec, spec.maxQuantity)),
    ...amount('min_order_price', priceOf(spec, spec.minPrice)),
    max_leverage: current.maxLeverage,
    ...amount('initial_margin_requirement', current.imr),
    ...amount('maintenance_margin_requirement', current.mmr),
    ...amount('mtb_long', current.mtbLong),
    ...amount('mtb_short', current.mtbShort),
    price_band: bandView(current, state.oracle_price),
    ...amount('price_protection', inForce),
    ...maybeAmount('next_price_protection', next?.width ?? null),
    next_price_protection_at: maybeTime(next?.at ?? null),
    ...amount('maker_fee', charging.makerFee),
    ...amount('taker_fee', charging.takerFee),
    fees: feesView(current, terms.fees, now),
    ...upcomingView(spec, terms, now),
    ...maybeAmount('oracle_price', state.oracle_price),
    oracle_price_at: state.oracle_at === null ? null : isoTime(state.oracle_at),
    ...oracleView(state, now, oracleMaxAgeMs),
    // The oracle price replaces the mark price before the first mark, as with a thin book.
    ...maybeAmount('mark_price', state.mark_price ?? state.oracle_price),
    ...maybeAmount('last_price', state.last_price === null ? null : priceOf(spec, state.last_price as Ticks)),
    last_batch_id: state.last_batch_id,
    ...fundingView(current, state, calendar, { mode, now }),
  }
}
