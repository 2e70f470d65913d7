/** Reads the environment of a process: every value is checked, and a refusal names its variable. */
import type { Address } from '../domain/units.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** Names the variable and what is wrong with it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** What an error says of a variable. */
export function fail(name: string, problem: string): never {
  throw new ConfigError(`${name} ${problem}`)
}

const POSTGRES = ['postgres:', 'postgresql:']
const HTTP = ['http:', 'https:']
const ON = ['on', 'true', '1']
const OFF = ['off', 'false', '0']

/** An empty variable counts as none; without a fallback it must be there, or the process `who` cannot start. */
export function environment(env: Env, who: string) {
  const optional = (name: string): string | null => env[name] || null
  const text = (name: string, fallback?: string): string =>
    optional(name) ?? fallback ?? fail(name, `is not set: the ${who} cannot start without it`)
  const url = (name: string, protocols: readonly string[]): string => {
    const value = text(name)
    if (URL.canParse(value) && protocols.includes(new URL(value).protocol)) return value
    // Not the value: it may hold a password.
    return fail(name, `is not a URL of ${protocols.join(' or ')}`)
  }
  return {
    optional,
    text,
    url,
    database: (): string => url('DATABASE_URL', POSTGRES),
    http: (name: string): string => url(name, HTTP),
    /** A whole number from `least`. */
    count(name: string, fallback?: number, least = 0): number {
      const value = Number(text(name, fallback?.toString()))
      return Number.isSafeInteger(value) && value >= least
        ? value
        : fail(name, `is not a whole number from ${least}: ${env[name]}`)
    },
    /** In wei. */
    amount(name: string, fallback: bigint): bigint {
      const value = text(name, fallback.toString())
      return /^\d+$/.test(value) ? BigInt(value) : fail(name, `is not an amount in wei: ${env[name]}`)
    },
    flag(name: string, fallback: boolean): boolean {
      const value = text(name, fallback ? 'on' : 'off').toLowerCase()
      if (ON.includes(value)) return true
      return OFF.includes(value) ? false : fail(name, `is neither on nor off: ${env[name]}`)
    },
    /** In lower case. */
    address(name: string): Address {
      const value = text(name).toLowerCase()
      return /^0x[0-9a-f]{40}$/.test(value)
        ? (value as Address)
        : fail(name, `is not an address: ${env[name]}`)
    },
  }
}
