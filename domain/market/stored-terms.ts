/** Market terms as JSON: amounts are decimal strings. */
import type { Millis, Rate } from '../units.ts'
import { type ChainTerms, listedTerms, type ModeChange } from './changes.ts'
import type { MarketMode, MarketSpec } from './market.ts'
import { listedParameters, type MarketParameters, type ReportLimits } from './parameters.ts'

type Stored<Of> = {
  readonly [Name in keyof Of]: Of[Name] extends bigint ? string : Of[Name] extends number ? number : Of[Name]
}

type StoredParameters = Omit<Stored<MarketParameters>, 'reports'> & {
  readonly reports: Stored<ReportLimits> | null
}

interface StoredModeChange {
  readonly mode: MarketMode
  readonly activeFrom: number
}

export interface StoredTerms {
  readonly parameters: StoredParameters
  readonly mode: MarketMode
  readonly pending: {
    readonly parameters: { readonly parameters: StoredParameters; readonly activeFrom: number } | null
    readonly mode: StoredModeChange | null
    readonly restriction: StoredModeChange | null
  }
}

const toStoredParameters = ({ reports, ...terms }: MarketParameters): StoredParameters => ({
  imr: terms.imr.toString(),
  mmr: terms.mmr.toString(),
  mtbLong: terms.mtbLong.toString(),
  mtbShort: terms.mtbShort.toString(),
  makerFee: terms.makerFee.toString(),
  takerFee: terms.takerFee.toString(),
  fundingCap: terms.fundingCap.toString(),
  maxLeverage: terms.maxLeverage,
  reports: reports && {
    maxAge: reports.maxAge,
    moveBase: reports.moveBase.toString(),
    moveSlope: reports.moveSlope.toString(),
    moveWindow: reports.moveWindow,
  },
})

const fromStoredParameters = ({ reports, ...stored }: StoredParameters): MarketParameters => ({
  imr: BigInt(stored.imr) as Rate,
  mmr: BigInt(stored.mmr) as Rate,
  mtbLong: BigInt(stored.mtbLong) as Rate,
  mtbShort: BigInt(stored.mtbShort) as Rate,
  makerFee: BigInt(stored.makerFee) as Rate,
  takerFee: BigInt(stored.takerFee) as Rate,
  fundingCap: BigInt(stored.fundingCap) as Rate,
  maxLeverage: stored.maxLeverage,
  reports: reports && {
    maxAge: reports.maxAge as Millis,
    moveBase: BigInt(reports.moveBase),
    moveSlope: BigInt(reports.moveSlope),
    moveWindow: reports.moveWindow as Millis,
  },
})

export function toStoredTerms({ parameters, mode, pending }: ChainTerms): StoredTerms {
  const next = pending.parameters
  return {
    parameters: toStoredParameters(parameters),
    mode,
    pending: {
      parameters: next && {
        parameters: toStoredParameters(next.parameters),
        activeFrom: next.activeFrom,
      },
      mode: pending.mode,
      restriction: pending.restriction,
    },
  }
}

/** Parses stored terms. `stored` is null while the listed parameters and mode apply. */
export function fromStoredTerms(stored: StoredTerms | null, listed: MarketSpec): ChainTerms {
  if (stored === null) return listedTerms(listedParameters(listed, null))
  const { parameters, mode, pending } = stored
  const next = pending.parameters
  return {
    parameters: fromStoredParameters(parameters),
    mode,
    pending: {
      parameters: next && {
        parameters: fromStoredParameters(next.parameters),
        activeFrom: next.activeFrom as Millis,
      },
      mode: pending.mode as ModeChange | null,
      restriction: pending.restriction as ModeChange | null,
    },
  }
}
