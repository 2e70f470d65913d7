/** Parameters and modes of a market as its contract stores and emits them. */
import type { MarketMode } from '../../../domain/market/market.ts'
import { MARKET_MODES, type MarketParameters } from '../../../domain/market/parameters.ts'
import type { Rate } from '../../../domain/units.ts'
import type { ParametersStructOutput } from '../../../typechain-types/IsolatedTrader.ts'
import { millisOf } from './event-table.ts'

const MILLIONTH = 10n ** 12n
const rateOf = (millionths: bigint): Rate => (millionths * MILLIONTH) as Rate

export const parametersOf = (args: ParametersStructOutput): MarketParameters => ({
  imr: rateOf(args.imr),
  mmr: rateOf(args.mmr),
  mtbLong: rateOf(args.mtbLong),
  mtbShort: rateOf(args.mtbShort),
  makerFee: rateOf(args.makerFee),
  takerFee: rateOf(args.takerFee),
  fundingCap: rateOf(args.fundingCap),
  maxLeverage: Number(args.maxLeverage),
  reports: {
    maxAge: millisOf(args.reportMaxAge),
    moveBase: args.moveBase,
    moveSlope: args.moveSlope,
    moveWindow: millisOf(args.moveWindow),
  },
})

export function modeOf(value: bigint): MarketMode {
  const mode = MARKET_MODES[Number(value)]
  if (mode === undefined)
    throw new Error(`mode ${value} is unknown; valid are 0 to ${MARKET_MODES.length - 1}`)
  return mode
}
