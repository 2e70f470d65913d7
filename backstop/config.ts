/** The environment of the backstop process, read and checked once. */
import type { ClosingRules } from '../domain/risk/backstop-closing.ts'
import type { Address } from '../domain/units.ts'
import { type Env, environment, type ProcessConfig } from '../service/environment.ts'
import { type KeyReader, keyReader, readAll, statedKey } from '../service/keys/key-settings.ts'
import type { KeySource } from '../service/keys/key-source.ts'

export interface Config extends ProcessConfig {
  /** Base URL of the REST interface. */
  readonly baseUrl: string
  /** The account that inherits positions: the contract `Backstop`. */
  readonly account: Address
  /** A session key of that account with the permission to sign orders. */
  readonly sessionKey: KeySource
  readonly apiKey: string
  readonly intervalMs: number
  readonly rules: ClosingRules
}

const NAME = 'backstop'
const MILLION = 1_000_000

/** An error never repeats the key. */
function sessionKeyOf(env: Env, reader: KeyReader): KeySource {
  const { optional, text } = environment(env, NAME)
  const path = optional('BACKSTOP_SESSION_KEY_FILE')
  return path === null
    ? reader.keyOf('BACKSTOP_SESSION_KEY', 'has', statedKey(text('BACKSTOP_SESSION_KEY')))
    : reader.keyInFile('BACKSTOP_SESSION_KEY_FILE', path)
}

/** Reads the environment. Throws a ConfigError with a line for each wrong variable, which it names. */
export function readConfig(env: Env): Config {
  const { text, http, count, address, process } = environment(env, NAME)
  const millionths = (name: string, fallback: number): number => count(name, fallback, 1, MILLION)
  const reader = keyReader(env, NAME)
  const [common, baseUrl, account, , sessionKey, apiKey, intervalMs, rules] = readAll(
    () => process(8087, 5_000),
    () => http('BASE_URL'),
    () => address('ADDRESS_BACKSTOP'),
    reader.check,
    () => sessionKeyOf(env, reader),
    () => text('BACKSTOP_API_KEY'),
    () => count('INTERVAL_MS', 5_000, 100),
    () => ({
      share: millionths('CLOSE_SHARE', 100_000),
      depthShare: millionths('CLOSE_DEPTH_SHARE', 250_000),
      bound: millionths('CLOSE_BOUND', 5_000),
    }),
  )
  return { ...common, baseUrl, account, sessionKey, apiKey, intervalMs, rules }
}
