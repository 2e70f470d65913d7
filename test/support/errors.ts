/** The custom error that a call reverted with, read from what it returned: no build of the contract is needed. */
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../../typechain-types/factories/SignedPriceOracle__factory.ts'

const INTERFACES = [
  IsolatedTrader__factory,
  MarginBank__factory,
  AccountManager__factory,
  SignedPriceOracle__factory,
].map((factory) => factory.createInterface())

/** Null if there is none, or one that no contract here declares. */
export function nameOfError(error: unknown): string | null {
  const { data } = (error ?? {}) as { data?: unknown }
  if (typeof data !== 'string' || data.length < 10) return null
  return INTERFACES.map((known) => known.parseError(data)?.name).find((name) => name !== undefined) ?? null
}

/** Name and arguments of the custom error that a call reverted with, `Name(1,2)`; null if it went through. */
export async function refusalOf(call: Promise<unknown>): Promise<string | null> {
  try {
    await call
    return null
  } catch (error) {
    const { data } = (error ?? {}) as { data?: unknown }
    return typeof data === 'string' && data.length >= 10 ? refusalIn(data) : (error as Error).message
  }
}

/** As above, from what the call returned; the data itself if no contract here declares it. */
export function refusalIn(data: string): string {
  const parsed = INTERFACES.map((known) => known.parseError(data)).find((each) => each !== null)
  return parsed ? `${parsed.name}(${parsed.args.join(',')})` : data
}
