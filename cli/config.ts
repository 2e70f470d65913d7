/** Profiles in the config file: where the exchange is, and in which files the secrets are. The file itself contains no secret. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CommandError } from './failure.ts'

export type Env = Readonly<Record<string, string | undefined>>

export interface Profile {
  readonly url?: string
  readonly rpc_url?: string
  readonly issuer_url?: string
  /** Checked before every signature. */
  readonly chain_id?: number
  /** stack.json of a local stack, and an account in it. */
  readonly stack?: string
  readonly account?: number
  readonly key_file?: string
  readonly api_key_file?: string
  readonly token_file?: string
}

export interface Config {
  readonly current?: string
  readonly profiles: Readonly<Record<string, Profile>>
}

/** Their addresses are asked for once, at the first login. */
export const PROFILES = ['local', 'testnet', 'mainnet'] as const

export function configFolder(env: Env, platform: NodeJS.Platform = process.platform): string {
  if (env.CLEARBATCH_CONFIG_DIR) return env.CLEARBATCH_CONFIG_DIR
  if (platform === 'win32') return join(env.APPDATA ?? join(homedir(), 'AppData', 'Roaming'), 'clearbatch')
  return join(env.XDG_CONFIG_HOME || join(env.HOME ?? homedir(), '.config'), 'clearbatch')
}

/** State that a command resumes from, such as that of `twap`. */
export function stateFolder(env: Env, platform: NodeJS.Platform = process.platform): string {
  if (env.CLEARBATCH_STATE_DIR) return env.CLEARBATCH_STATE_DIR
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local'), 'clearbatch')
  return join(env.XDG_STATE_HOME || join(env.HOME ?? homedir(), '.local', 'state'), 'clearbatch')
}

const fileIn = (env: Env): string => join(configFolder(env), 'config.json')

export function readConfig(env: Env): Config {
  const file = fileIn(env)
  if (!existsSync(file)) return { profiles: {} }
  try {
    const config = JSON.parse(readFileSync(file, 'utf8')) as Partial<Config>
    return { ...config, profiles: config.profiles ?? {} }
  } catch (error) {
    throw new CommandError(
      `${file} cannot be read as JSON (${(error as Error).message}): correct or delete it`,
    )
  }
}

/** Replaces the file at once, so that an interrupted write leaves the old one. */
export function writePrivately(file: string, content: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const fresh = `${file}.${process.pid}.new`
  writeFileSync(fresh, content, { mode: 0o600 })
  renameSync(fresh, file)
}

export function saveProfile(env: Env, name: string, profile: Profile): string {
  const file = fileIn(env)
  const { profiles } = readConfig(env)
  const config: Config = { current: name, profiles: { ...profiles, [name]: profile } }
  writePrivately(file, `${JSON.stringify(config, null, 2)}\n`)
  return file
}
