/** The environment of a signer, read and checked once. */
import type { OracleDomain } from '../domain/prices/report-hash.ts'
import {
  type Env,
  environment,
  type Listener,
  type ProcessConfig,
  rejectVariable,
} from '../service/environment.ts'
import { JsonError } from '../service/json-reader.ts'
import { type KeyReader, keyReader, readAll, statedKey, textOfFile } from '../service/keys/key-settings.ts'
import type { KeySource } from '../service/keys/key-source.ts'
import { parseFeedsFile, type SignableFeeds } from './feeds-file.ts'

export interface Config extends ProcessConfig {
  /** Listener at which the publisher requests signatures. */
  readonly listener: Listener
  readonly key: KeySource
  /** Secret with which the publisher authenticates. */
  readonly secret: string
  readonly domain: OracleDomain
  readonly feeds: SignableFeeds
}

const SHORTEST_SECRET = 16

/** An error never repeats the key. */
function keyOf(env: Env, reader: KeyReader): KeySource {
  const { optional, text } = environment(env, 'oracle-signer')
  const path = optional('SIGNER_KEY_FILE')
  return path === null
    ? reader.keyOf('SIGNER_KEY', 'has', statedKey(text('SIGNER_KEY')))
    : reader.keyInFile('SIGNER_KEY_FILE', path)
}

function feedsOf(path: string): SignableFeeds {
  try {
    return parseFeedsFile(textOfFile('SIGNER_FEEDS_FILE', path))
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return rejectVariable('SIGNER_FEEDS_FILE', `is invalid: ${error.message}`)
  }
}

function secretOf(env: Env): string {
  const secret = environment(env, 'oracle-signer').text('SIGNER_SECRET')
  if (secret.length >= SHORTEST_SECRET) return secret
  return rejectVariable(
    'SIGNER_SECRET',
    `has ${secret.length} characters: expected at least ${SHORTEST_SECRET}`,
  )
}

/** Reads the environment. Throws a ConfigError with a line for each wrong variable, which it names. */
export function readConfig(env: Env): Config {
  const { text, listener, count, address, process } = environment(env, 'oracle-signer')
  const reader = keyReader(env, 'oracle-signer')
  const [common, listenAt, , key, secret, chainId, oracle, feeds] = readAll(
    () => process(8086, 5_000),
    () => listener('HOST', 'PORT', 8085),
    reader.check,
    () => keyOf(env, reader),
    () => secretOf(env),
    () => BigInt(count('CHAIN_ID')),
    () => address('ADDRESS_ORACLE'),
    () => feedsOf(text('SIGNER_FEEDS_FILE')),
  )
  return { ...common, listener: listenAt, key, secret, domain: { chainId, oracle }, feeds }
}
