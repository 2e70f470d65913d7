/** Parameters of a market by their flags, checked by the rules of the contract before a transaction is built. */
import type { MarketSpec } from '../domain/market/market.ts'
import { type ParameterField, parameterRefusals } from '../domain/market/parameter-rules.ts'
import type { MarketParameters } from '../domain/market/parameters.ts'
import { type Millis, type Rate, toDecimal } from '../domain/units.ts'
import { decimal, wholeNumber } from '../service/command-line.ts'
import { OpsError } from './error.ts'

/** The contract counts fractions in millionths. */
const MILLIONTH = 10n ** 12n

export const PARAMETER_FLAGS = {
  imr: decimal('initial margin requirement, a fraction of notional'),
  mmr: decimal('maintenance margin requirement, a fraction of notional'),
  'mtb-long': decimal('price band above the oracle price, a fraction of it'),
  'mtb-short': decimal('price band below the oracle price, a fraction of it'),
  'maker-fee': decimal('highest maker rate'),
  'taker-fee': decimal('highest taker rate'),
  'funding-cap': decimal('highest funding rate per hour, a fraction of the oracle price'),
  'max-leverage': wholeNumber('highest leverage of an order'),
  'report-max-age': wholeNumber('maximum age of an oracle report in a batch, in milliseconds'),
  'move-base': decimal('move of the oracle price that the window allows, a fraction of it'),
  'move-per-second': decimal('further move per second, a fraction of it'),
  'move-window': wholeNumber('window of --move-base in milliseconds'),
} as const

type Flags = {
  readonly [Name in keyof typeof PARAMETER_FLAGS]: ReturnType<(typeof PARAMETER_FLAGS)[Name]['read']>
}

const NAMES: Readonly<Record<ParameterField, keyof Flags>> = {
  imr: 'imr',
  mmr: 'mmr',
  mtbLong: 'mtb-long',
  mtbShort: 'mtb-short',
  makerFee: 'maker-fee',
  takerFee: 'taker-fee',
  fundingCap: 'funding-cap',
  maxLeverage: 'max-leverage',
  reportMaxAge: 'report-max-age',
  moveBase: 'move-base',
  moveSlope: 'move-per-second',
  moveWindow: 'move-window',
}

/** A decimal of a flag x 1e18. */
export function toRate(flag: string, text: string): Rate {
  const [whole = '', fraction = ''] = text.split('.')
  if (fraction.length > 6) throw new OpsError(`--${flag} must be a multiple of 0.000001; received ${text}`)
  return BigInt(whole + fraction.padEnd(18, '0')) as Rate
}

/** The parameters in force with those of the flags. Throws an OpsError that names each invalid flag, what was received and what is valid. */
export function changedParameters(
  current: MarketParameters,
  flags: Flags,
  { kind }: Pick<MarketSpec, 'kind'>,
): MarketParameters {
  if (Object.keys(PARAMETER_FLAGS).every((name) => flags[name as keyof Flags] === undefined))
    throw new OpsError(`nothing changes: pass at least one of --${Object.keys(PARAMETER_FLAGS).join(', --')}`)
  const rate = (name: keyof Flags, fallback: Rate): Rate => {
    const value = flags[name]
    return value === undefined ? fallback : toRate(name, String(value))
  }
  const { reports } = current
  if (reports === null) throw new OpsError('the contract has no rules for reports')
  const millionths = (name: keyof Flags, fallback: bigint): bigint =>
    rate(name, (fallback * MILLIONTH) as Rate) / MILLIONTH
  const next: MarketParameters = {
    imr: rate('imr', current.imr),
    mmr: rate('mmr', current.mmr),
    mtbLong: rate('mtb-long', current.mtbLong),
    mtbShort: rate('mtb-short', current.mtbShort),
    makerFee: rate('maker-fee', current.makerFee),
    takerFee: rate('taker-fee', current.takerFee),
    fundingCap: rate('funding-cap', current.fundingCap),
    maxLeverage: flags['max-leverage'] ?? current.maxLeverage,
    reports: {
      maxAge: (flags['report-max-age'] ?? reports.maxAge) as Millis,
      moveBase: millionths('move-base', reports.moveBase),
      moveSlope: millionths('move-per-second', reports.moveSlope),
      moveWindow: (flags['move-window'] ?? reports.moveWindow) as Millis,
    },
  }
  const refusals = parameterRefusals(next, kind)
  if (refusals.length === 0) return next
  const lines = refusals.map(
    ({ field, received, valid }) => `--${NAMES[field]} must be ${valid}; received ${received}`,
  )
  throw new OpsError(lines.join('\n'))
}

/** The struct of the contract. `mode`: parameters do not change the mode, so it is the current one. */
export const toStruct = ({ reports, ...parameters }: MarketParameters, mode: number) => ({
  imr: parameters.imr / MILLIONTH,
  mmr: parameters.mmr / MILLIONTH,
  mtbLong: parameters.mtbLong / MILLIONTH,
  mtbShort: parameters.mtbShort / MILLIONTH,
  makerFee: parameters.makerFee / MILLIONTH,
  takerFee: parameters.takerFee / MILLIONTH,
  reportMaxAge: reports?.maxAge ?? 0,
  moveBase: reports?.moveBase ?? 0n,
  moveSlope: reports?.moveSlope ?? 0n,
  moveWindow: reports?.moveWindow ?? 0,
  fundingCap: parameters.fundingCap / MILLIONTH,
  maxLeverage: parameters.maxLeverage,
  mode,
})

/** By the names of the flags, for output. */
export function shownParameters({ reports, ...parameters }: MarketParameters): Record<string, string> {
  return {
    imr: toDecimal(parameters.imr),
    mmr: toDecimal(parameters.mmr),
    'mtb-long': toDecimal(parameters.mtbLong),
    'mtb-short': toDecimal(parameters.mtbShort),
    'maker-fee': toDecimal(parameters.makerFee),
    'taker-fee': toDecimal(parameters.takerFee),
    'funding-cap': toDecimal(parameters.fundingCap),
    'max-leverage': String(parameters.maxLeverage),
    ...(reports && {
      'report-max-age': `${reports.maxAge} ms`,
      'move-base': toDecimal(reports.moveBase * MILLIONTH),
      'move-per-second': toDecimal(reports.moveSlope * MILLIONTH),
      'move-window': `${reports.moveWindow} ms`,
    }),
  }
}
