/** The environment of a signer, read and checked once. */
import { readFileSync } from 'node:fs'
import type { OracleDomain } from '../domain/prices/report-hash.ts'
import {
  type Env,
  environment,
  type Listener,
  type ProcessConfig,
  rejectVariable,
} from '../service/environment.ts'
import { JsonError } from '../service/json-reader.ts'
import { parseFeedsFile, type SignableFeeds } from './feeds-file.ts'

export interface Config extends ProcessConfig {
  /** Where the publisher asks for signatures. */
  readonly listener: Listener
  readonly privateKey: string
  /** The publisher authenticates with it. */
  readonly secret: string
  readonly domain: OracleDomain
  readonly feeds: SignableFeeds
}

const SHORTEST_SECRET = 16

function fileOf(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return rejectVariable(variable, `is ${JSON.stringify(path)}, which cannot be read: ${code}`)
  }
}

/** An error never repeats the key. */
function keyOf(env: Env): string {
  const { optional, text } = environment(env, 'oracle-signer')
  const path = optional('SIGNER_KEY_FILE')
  const [variable, key] =
    path === null
      ? (['SIGNER_KEY', text('SIGNER_KEY')] as const)
      : (['SIGNER_KEY_FILE', fileOf('SIGNER_KEY_FILE', path).trim()] as const)
  if (/^0x[0-9a-fA-F]{64}$/.test(key)) return key
  return rejectVariable(variable, 'has an invalid key: expected 0x and 64 hexadecimal digits')
}

function feedsOf(path: string): SignableFeeds {
  try {
    return parseFeedsFile(fileOf('SIGNER_FEEDS_FILE', path))
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return rejectVariable('SIGNER_FEEDS_FILE', `is invalid: ${error.message}`)
  }
}

/** Reads the environment. Throws a ConfigError that names the variable. */
export function readConfig(env: Env): Config {
  const { text, listener, count, address, process } = environment(env, 'oracle-signer')
  const secret = text('SIGNER_SECRET')
  if (secret.length < SHORTEST_SECRET)
    rejectVariable('SIGNER_SECRET', `has ${secret.length} characters: expected at least ${SHORTEST_SECRET}`)
  return {
    ...process(8086, 5_000),
    listener: listener('HOST', 'PORT', 8085),
    privateKey: keyOf(env),
    secret,
    domain: { chainId: BigInt(count('CHAIN_ID')), oracle: address('ADDRESS_ORACLE') },
    feeds: feedsOf(text('SIGNER_FEEDS_FILE')),
  }
}
