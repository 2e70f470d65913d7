/**
 * Decodes the custom error with which a call reverted from its return data, without a build of the contracts.
 */
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import { AggregatorOracle__factory } from '../../typechain-types/factories/AggregatorOracle__factory.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../../typechain-types/factories/SignedPriceOracle__factory.ts'

const INTERFACES = [
  IsolatedTrader__factory,
  MarginBank__factory,
  AccountManager__factory,
  SignedPriceOracle__factory,
  AggregatorOracle__factory,
].map((factory) => factory.createInterface())

/** Null if there is no custom error, or one that no contract of this repository declares. */
export function nameOfError(error: unknown): string | null {
  const { data } = (error ?? {}) as { data?: unknown }
  if (typeof data !== 'string' || data.length < 10) return null
  return INTERFACES.map((known) => known.parseError(data)?.name).find((name) => name !== undefined) ?? null
}

/**
 * Name and arguments of the custom error with which a call reverted, `Name(1,2)`; null if the call succeeded.
 */
export async function refusalOf(call: Promise<unknown>): Promise<string | null> {
  try {
    await call
    return null
  } catch (error) {
    const { data } = (error ?? {}) as { data?: unknown }
    return typeof data === 'string' && data.length >= 10 ? refusalIn(data) : (error as Error).message
  }
}

/** The same, from the return data; the data itself if no contract of this repository declares the error. */
export function refusalIn(data: string): string {
  const parsed = INTERFACES.map((known) => known.parseError(data)).find((each) => each !== null)
  return parsed ? `${parsed.name}(${parsed.args.join(',')})` : data
}
