/** The environment of the backstop process, read and checked once. */
import { readFileSync } from 'node:fs'
import type { ClosingRules } from '../domain/risk/backstop-closing.ts'
import type { Address } from '../domain/units.ts'
import { type Env, environment, type ProcessConfig, rejectVariable } from '../service/environment.ts'

export interface Config extends ProcessConfig {
  /** Of the REST interface. */
  readonly baseUrl: string
  /** The account that inherits positions: the contract `Backstop`. */
  readonly account: Address
  /** A session key of that account with the permission to sign orders. */
  readonly sessionKey: string
  readonly apiKey: string
  readonly intervalMs: number
  readonly rules: ClosingRules
}

const NAME = 'backstop'
const MILLION = 1_000_000

/** An error never repeats the key. */
function sessionKeyOf(env: Env): string {
  const { optional, text } = environment(env, NAME)
  const path = optional('BACKSTOP_SESSION_KEY_FILE')
  const key = path === null ? text('BACKSTOP_SESSION_KEY') : keyIn(path)
  const variable = path === null ? 'BACKSTOP_SESSION_KEY' : 'BACKSTOP_SESSION_KEY_FILE'
  if (/^0x[0-9a-fA-F]{64}$/.test(key)) return key
  return rejectVariable(variable, 'has an invalid key: expected 0x and 64 hexadecimal digits')
}

function keyIn(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return rejectVariable(
      'BACKSTOP_SESSION_KEY_FILE',
      `is ${JSON.stringify(path)}, which cannot be read: ${code}`,
    )
  }
}

/** Reads the environment. Throws a ConfigError that names the variable. */
export function readConfig(env: Env): Config {
  const { text, http, count, address, process } = environment(env, NAME)
  const millionths = (name: string, fallback: number): number => count(name, fallback, 1, MILLION)
  return {
    ...process(8087, 5_000),
    baseUrl: http('BASE_URL'),
    account: address('ADDRESS_BACKSTOP'),
    sessionKey: sessionKeyOf(env),
    apiKey: text('BACKSTOP_API_KEY'),
    intervalMs: count('INTERVAL_MS', 5_000, 100),
    rules: {
      share: millionths('CLOSE_SHARE', 100_000),
      depthShare: millionths('CLOSE_DEPTH_SHARE', 250_000),
      bound: millionths('CLOSE_BOUND', 5_000),
    },
  }
}
