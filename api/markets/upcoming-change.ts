/** The announced changes of a market that are not in force yet: parameters, mode, close and fees. */
import Type, { type Static } from 'typebox'
import { applyDue, type UpcomingChange, upcomingChanges } from '../../domain/market/changes.ts'
import { nextFeeChange } from '../../domain/market/fee-periods.ts'
import { type MarketTerms, termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { MARKET_MODES, type MarketParameters, type ReportLimits } from '../../domain/market/parameters.ts'
import type { Millis } from '../../domain/units.ts'
import { amount, isoTime } from '../wire/amounts.ts'
import { nullableObject, Time, words } from '../wire/schema.ts'

const RATES = {
  imr: 'initial_margin_requirement',
  mmr: 'maintenance_margin_requirement',
  mtbLong: 'mtb_long',
  mtbShort: 'mtb_short',
  makerFee: 'highest_maker_fee',
  takerFee: 'highest_taker_fee',
  fundingCap: 'funding_cap',
} as const satisfies Partial<Record<keyof MarketParameters, string>>

/** The contract counts in millionths. */
const MILLIONTH = 10n ** 12n

/** By the names of the market's fields; amounts twice, as everywhere. */
const Values = Type.Unsafe<Record<string, number | string>>({
  type: 'object',
  additionalProperties: { type: ['number', 'string'] },
  description:
    `The values that change: ${Object.values(RATES).join(', ')}, max_leverage, report_max_age_ms, report_move_base, ` +
    'report_move_per_second, report_move_window_ms; for fees maker_fee and taker_fee. Amounts also as `_e18_raw`.',
})

const KINDS = ['parameters', 'mode', 'wind_down', 'fees'] as const

const Change = Type.Object({
  kind: words(KINDS, 'parameters, mode, wind_down (the market closes) or fees.'),
  active_from: Time('In force for batches as of this time or later, and for placements from then on.'),
  mode: Type.Unsafe<(typeof MARKET_MODES)[number] | null>({
    type: ['string', 'null'],
    enum: [...MARKET_MODES, null],
    description: 'The mode from then on; null if the change is none of the mode.',
  }),
  values: Values,
})
type Change = Static<typeof Change>

export const UPCOMING = {
  upcoming_change: nullableObject(Change, 'The next announced change; null if none is announced.'),
  later_changes: Type.Array(Change, { description: 'The announced changes after it, the earliest first.' }),
}

export function upcomingView(listed: MarketSpec, terms: MarketTerms, now: Millis) {
  const { spec } = termsAt(listed, terms, now)
  const inForce = applyDue(terms.chain, now).parameters
  const fees = nextFeeChange(spec, terms.fees, now)
  const changes = [
    ...upcomingChanges(terms, now).map((change) => changeView(inForce, change)),
    ...(fees === null
      ? []
      : [
          {
            ...{ kind: 'fees' as const, active_from: isoTime(fees.at), mode: null },
            values: {
              ...amount('maker_fee', fees.rates.makerFee),
              ...amount('taker_fee', fees.rates.takerFee),
            },
          },
        ]),
  ]
  const [next = null, ...later] = changes.sort((a, b) => a.active_from.localeCompare(b.active_from))
  return { upcoming_change: next as Change | null, later_changes: later as Change[] }
}

function changeView(inForce: MarketParameters, change: UpcomingChange): Change {
  const common = { kind: change.kind, active_from: isoTime(change.activeFrom) }
  switch (change.kind) {
    case 'parameters':
      return { ...common, mode: null, values: changedValues(inForce, change.parameters) }
    case 'mode':
      return { ...common, mode: change.mode, values: {} }
    case 'wind_down':
      return { ...common, mode: 'settling', values: {} }
  }
}

function changedValues(before: MarketParameters, after: MarketParameters): Change['values'] {
  const rates = Object.entries(RATES).flatMap(([name, shown]) => {
    const field = name as keyof typeof RATES
    return before[field] === after[field] ? [] : Object.entries(amount(shown, after[field]))
  })
  return {
    ...Object.fromEntries(rates),
    ...(before.maxLeverage !== after.maxLeverage && { max_leverage: after.maxLeverage }),
    ...(after.reports && changedReports(before.reports, after.reports)),
  }
}

/** All limits if those before are not known. */
const changedReports = (before: ReportLimits | null, after: ReportLimits) => ({
  ...(before?.maxAge !== after.maxAge && { report_max_age_ms: after.maxAge }),
  ...(before?.moveBase !== after.moveBase && amount('report_move_base', after.moveBase * MILLIONTH)),
  ...(before?.moveSlope !== after.moveSlope && amount('report_move_per_second', after.moveSlope * MILLIONTH)),
  ...(before?.moveWindow !== after.moveWindow && { report_move_window_ms: after.moveWindow }),
})
