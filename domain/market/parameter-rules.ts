/**
 * Rules for a market's parameters, with the valid values. Twin of `requireParameters` in the contract's ListingLib.
 */
import { mulDivUp, toDecimal } from '../units.ts'
import { MAX_LEVERAGE, type MarketKind } from './market.ts'
import type { MarketParameters } from './parameters.ts'

export type ParameterField =
  | Exclude<keyof MarketParameters, 'reports'>
  | 'reportMaxAge'
  | 'moveBase'
  | 'moveSlope'
  | 'moveWindow'

export interface ParameterRefusal {
  readonly field: ParameterField
  readonly received: string
  readonly valid: string
}

const MILLIONTH = 10n ** 12n
const MILLION = 1_000_000n
const MIN_SPREAD = 7_500n
const MAX_FEE = 50_000n
const MAX_FUNDING_CAP = 40_000n
const MAX_AGE = 60_000
const MIN_WINDOW = 1_000
/** Seconds after which a report of a binary market can have any price. */
const MAX_BINARY_GAP = 1_800n

/** Millionths as a decimal. */
const shown = (millionths: bigint): string => toDecimal(millionths * MILLIONTH)
const between = (low: bigint, high: bigint): string => `from ${shown(low)} to ${shown(high)}`

interface Rule {
  readonly field: ParameterField
  /** Millionths, or a count. */
  readonly value: bigint | number
  readonly low: bigint | number
  readonly high: bigint | number
}

const isBroken = ({ value, low, high }: Rule): boolean =>
  typeof value === 'number'
    ? !Number.isSafeInteger(value) || value < low || value > high
    : value < low || value > high

const refusalOf = ({ field, value, low, high }: Rule): ParameterRefusal =>
  typeof value === 'number'
    ? { field, received: String(value), valid: `a whole number from ${low} to ${high}` }
    : { field, received: shown(value), valid: between(low as bigint, high as bigint) }

/**
 * Every rule that the parameters violate, each with the values that are valid beside the other parameters.
 */
export function parameterRefusals(
  parameters: MarketParameters,
  kind: MarketKind,
): readonly ParameterRefusal[] {
  const offGrid = fractionsOf(parameters).filter(([, rate]) => rate % MILLIONTH !== 0n)
  if (offGrid.length > 0) {
    const valid = 'a multiple of 0.000001'
    return offGrid.map(([field, rate]) => ({ field, received: toDecimal(rate), valid }))
  }
  const rules = rulesOf(parameters, kind)
  const broken = rules.filter(isBroken).map(refusalOf)
  const { reports } = parameters
  return reports !== null && reports.moveBase === 0n && reports.moveSlope === 0n
    ? [...broken, { field: 'moveBase', received: '0', valid: 'above 0, unless moveSlope is' }]
    : broken
}

const fractionsOf = (p: MarketParameters): (readonly [ParameterField, bigint])[] => [
  ['imr', p.imr],
  ['mmr', p.mmr],
  ['mtbLong', p.mtbLong],
  ['mtbShort', p.mtbShort],
  ['makerFee', p.makerFee],
  ['takerFee', p.takerFee],
  ['fundingCap', p.fundingCap],
]

/** Lowest slope of a binary market, so that base and slope sum to 1 within `MAX_BINARY_GAP`. */
const lowestSlope = (kind: MarketKind, moveBase: bigint): bigint =>
  kind === 'binary_future' && moveBase < MILLION ? mulDivUp(MILLION - moveBase, 1n, MAX_BINARY_GAP) : 0n

function rulesOf(parameters: MarketParameters, kind: MarketKind): Rule[] {
  const { maxLeverage, reports } = parameters
  const [imr, mmr, mtbLong, mtbShort, makerFee, takerFee, fundingCap] = fractionsOf(parameters).map(
    ([, rate]) => rate / MILLIONTH,
  ) as [bigint, bigint, bigint, bigint, bigint, bigint, bigint]
  const isLeverage = Number.isSafeInteger(maxLeverage) && maxLeverage >= 1 && maxLeverage <= MAX_LEVERAGE
  return [
    { field: 'maxLeverage', value: maxLeverage, low: 1, high: MAX_LEVERAGE },
    { field: 'mmr', value: mmr, low: 1n, high: MILLION - MIN_SPREAD },
    // The highest leverage can open at the oracle price.
    {
      field: 'imr',
      value: imr,
      low: mmr + MIN_SPREAD,
      high: isLeverage ? MILLION / BigInt(maxLeverage) : MILLION,
    },
    { field: 'mtbLong', value: mtbLong, low: 0n, high: MILLION },
    { field: 'mtbShort', value: mtbShort, low: 0n, high: MILLION - 1n },
    { field: 'takerFee', value: takerFee, low: 0n, high: MAX_FEE },
    // An order reserves its fee at the taker rate.
    { field: 'makerFee', value: makerFee, low: 0n, high: takerFee < MAX_FEE ? takerFee : MAX_FEE },
    { field: 'fundingCap', value: fundingCap, low: 0n, high: kind === 'perpetual' ? MAX_FUNDING_CAP : 0n },
    ...(reports === null
      ? []
      : ([
          { field: 'reportMaxAge', value: reports.maxAge as number, low: 1, high: MAX_AGE },
          { field: 'moveWindow', value: reports.moveWindow as number, low: MIN_WINDOW, high: MAX_AGE },
          { field: 'moveBase', value: reports.moveBase, low: 0n, high: MILLION },
          {
            field: 'moveSlope',
            value: reports.moveSlope,
            low: lowestSlope(kind, reports.moveBase),
            high: MILLION,
          },
        ] satisfies Rule[])),
  ]
}
