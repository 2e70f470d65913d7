/** Reads the environment of a process: every value is checked, and each error names its variable. */
import type { Address } from '../domain/units.ts'
import { serverTls, type TlsSource } from './certificates.ts'
import { ConfigError, type Env, orNoted, rejectVariable } from './config-error.ts'
import { databaseAddress } from './database-address.ts'

export { ConfigError, type Env, orNoted, rejectVariable }

export interface Listener {
  readonly host: string
  /** 0 for a free port. */
  readonly port: number
  /** Absent: plain HTTP. */
  readonly tls?: TlsSource
}

/**
 * Time between SIGTERM and SIGKILL that a supervisor must allow. The local stack sends SIGKILL after exactly
 * this time.
 */
export const KILL_AFTER_MS = 20_000
/** Longest drain. The difference to `KILL_AFTER_MS` lets a process log an exceeded drain and exit. */
export const MOST_DRAIN_MS = KILL_AFTER_MS - 2_000

/** Variables that every process reads. */
export interface ProcessConfig {
  /** Address of the health and metrics server, for the operator only. */
  readonly internal: Listener
  readonly logLevel: string
  /** Size beyond which the file behind stdout is rotated; 0: never. */
  readonly logFileBytes: number
  /** Longest drain; a process that exceeds it exits with code 1. */
  readonly drainMs: number
  /** Kill point at which a crash test ends the process. */
  readonly killAt: string | null
}

export const LOOPBACK = '127.0.0.1'
const POSTGRES = ['postgres:', 'postgresql:']
const HTTP = ['http:', 'https:']
const ON = ['on', 'true', '1']
const OFF = ['off', 'false', '0']
const NO_ADDRESS = `0x${'0'.repeat(40)}` as Address
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** An empty variable counts as not set. `processName` appears in the error of a missing variable. */
export function environment(env: Env, processName: string) {
  const received = (name: string, valid: string): never =>
    rejectVariable(name, `is ${JSON.stringify(env[name])}: expected ${valid}`)
  const optional = (name: string): string | null => env[name] || null
  const text = (name: string, fallback?: string): string =>
    optional(name) ??
    fallback ??
    rejectVariable(name, `is not set: the ${processName} cannot start without it`)
  /** Reads a variable that must be one of `words`. */
  const choice = (name: string, words: readonly string[], fallback: string): string => {
    const value = text(name, fallback)
    return words.includes(value) ? value : received(name, `one of ${words.join(', ')}`)
  }
  const url = (name: string, protocols: readonly string[]): string => {
    const value = text(name)
    const valid = `expected a URL with protocol ${protocols.join(' or ')}`
    // The value is not repeated: a URL may contain a password.
    if (!URL.canParse(value)) return rejectVariable(name, `is not a URL: ${valid}`)
    const { protocol } = new URL(value)
    return protocols.includes(protocol) ? value : rejectVariable(name, `has protocol ${protocol} ${valid}`)
  }
  /** Reads a whole number from `least` to `most`. */
  const count = (
    name: string,
    fallback?: number,
    least = 0,
    most: number = Number.MAX_SAFE_INTEGER,
  ): number => {
    const value = Number(text(name, fallback?.toString()))
    if (Number.isSafeInteger(value) && value >= least && value <= most) return value
    const bounds = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
    return received(name, `a whole number ${bounds}`)
  }
  const amount = (name: string, fallback: bigint): bigint => {
    const value = text(name, fallback.toString())
    return /^\d+$/.test(value) ? BigInt(value) : received(name, 'an amount in wei, decimal digits only')
  }
  const flag = (name: string, fallback: boolean): boolean => {
    const value = text(name, fallback ? 'on' : 'off').toLowerCase()
    if (ON.includes(value)) return true
    return OFF.includes(value) ? false : received(name, `one of ${[...ON, ...OFF].join(', ')}`)
  }
  const address = (name: string): Address => {
    const value = text(name).toLowerCase()
    return /^0x[0-9a-f]{40}$/.test(value)
      ? (value as Address)
      : received(name, 'an address, 0x and 40 hexadecimal digits')
  }
  const notedCount = (name: string, fallback?: number, least = 0, most?: number): number =>
    orNoted(() => count(name, fallback, least, most), fallback ?? least)
  const port = (name: string, fallback: number): number => notedCount(name, fallback, 0, 65_535)
  const listener = (hostName: string, portName: string, defaultPort: number): Listener => {
    const tls = orNoted(() => serverTls(env), null)
    return { host: text(hostName, LOOPBACK), port: port(portName, defaultPort), ...(tls && { tls }) }
  }
  return {
    optional,
    text: (name: string, fallback?: string): string => orNoted(() => text(name, fallback), fallback ?? ''),
    url: (name: string, protocols: readonly string[]): string => orNoted(() => url(name, protocols), ''),
    count: notedCount,
    /** The connection string, with the files of its certificates and of its password (`database-address.ts`). */
    database: (): string => orNoted(() => databaseAddress(env, url('DATABASE_URL', POSTGRES)), ''),
    http: (name: string): string => orNoted(() => url(name, HTTP), ''),
    /** Reads an amount in wei. */
    amount: (name: string, fallback: bigint): bigint => orNoted(() => amount(name, fallback), fallback),
    flag: (name: string, fallback: boolean): boolean => orNoted(() => flag(name, fallback), fallback),
    /** Reads an address and converts it to lower case. */
    address: (name: string): Address => orNoted(() => address(name), NO_ADDRESS),
    port,
    listener,
    process: (defaultInternalPort: number, defaultDrainMs = 10_000): ProcessConfig => ({
      internal: listener('INTERNAL_HOST', 'INTERNAL_PORT', defaultInternalPort),
      logLevel: orNoted(() => choice('LOG_LEVEL', LOG_LEVELS, 'info'), 'info'),
      logFileBytes: notedCount('LOG_FILE_BYTES', 0),
      drainMs: notedCount('DRAIN_MS', defaultDrainMs, 1, MOST_DRAIN_MS),
      killAt: optional('CLEARBATCH_KILL_AT'),
    }),
  }
}
