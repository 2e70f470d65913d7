/** Where a command runs: the exchange, and the files of the account's secrets. A flag wins over the environment, and that over the profile. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Env, type Profile, readConfig } from './config.ts'
import { CommandError, EXIT } from './failure.ts'
import type { GlobalValues } from './global-flags.ts'

/** The part of stack.json that a trader needs. */
export interface StackFile {
  readonly base_url: string
  readonly issuer_url: string
  readonly rpc_url: string
  readonly chain_id: number
  readonly accounts: readonly {
    readonly address: string
    readonly private_key: string
    readonly api_key: string
  }[]
}

export interface Place {
  readonly profile: string
  readonly url: string
  readonly rpcUrl: string | undefined
  readonly issuerUrl: string | undefined
  /** Chain id of the profile; undefined if the exchange was named by address alone. */
  readonly chainId: number | undefined
  readonly keyFile: string | undefined
  readonly apiKeyFile: string | undefined
  readonly tokenFile: string | undefined
  /** An account of a local stack, whose secrets are in stack.json. */
  readonly stackAccount: StackFile['accounts'][number] | undefined
}

export const DEFAULT_STACK = '.clearbatch/stack.json'

export function readStack(path: string): StackFile {
  let stack: StackFile
  try {
    stack = JSON.parse(readFileSync(path, 'utf8')) as StackFile
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new CommandError(
      `${path} cannot be read (${code ?? message}): start the exchange with \`npm start\` in its repository, or pass --stack or --url`,
      EXIT.unavailable,
    )
  }
  return stack
}

const wholeNumberOf = (text: string | undefined, name: string): number | undefined => {
  if (text === undefined || text === '') return undefined
  if (!/^\d+$/.test(text))
    throw new CommandError(`${name} must be a whole number; received ${text}`, EXIT.usage)
  return Number(text)
}

/** Every setting as the command line, the environment or the profile has it. */
function settingsOf(flags: GlobalValues, env: Env, profile: Profile) {
  const url = flags.url ?? (env.CLEARBATCH_URL || undefined)
  // An address on the command line does not belong to the profile's chain, keys and node.
  const isOther = url !== undefined && url !== profile.url
  const base: Profile = isOther ? {} : profile
  return {
    url: url ?? base.url,
    rpcUrl: flags['rpc-url'] ?? (env.CLEARBATCH_RPC_URL || undefined) ?? base.rpc_url,
    issuerUrl: flags['issuer-url'] ?? (env.CLEARBATCH_ISSUER_URL || undefined) ?? base.issuer_url,
    keyFile: flags['key-file'] ?? (env.CLEARBATCH_KEY_FILE || undefined) ?? base.key_file,
    apiKeyFile: flags['api-key-file'] ?? (env.CLEARBATCH_API_KEY_FILE || undefined) ?? base.api_key_file,
    tokenFile: flags['token-file'] ?? (env.CLEARBATCH_TOKEN_FILE || undefined) ?? base.token_file,
    stack: flags.stack ?? (env.CLEARBATCH_STACK || undefined) ?? base.stack,
    account: flags.account ?? wholeNumberOf(env.CLEARBATCH_ACCOUNT, 'CLEARBATCH_ACCOUNT') ?? base.account,
    chainId: base.chain_id,
  }
}

export function placeOf(flags: GlobalValues, env: Env): Place {
  const config = readConfig(env)
  const name = flags.profile ?? (env.CLEARBATCH_PROFILE || undefined) ?? config.current ?? 'local'
  const settings = settingsOf(flags, env, config.profiles[name] ?? {})
  const { url, stack, keyFile, apiKeyFile, tokenFile } = settings
  const files = { keyFile, apiKeyFile, tokenFile }
  if (url !== undefined)
    return {
      profile: name,
      url: checkedUrl(url),
      rpcUrl: settings.rpcUrl,
      issuerUrl: settings.issuerUrl,
      chainId: settings.chainId,
      ...files,
      stackAccount: undefined,
    }
  if (name !== 'local' && stack === undefined)
    throw new CommandError(
      `the profile ${name} has no address yet: run \`clearbatch auth login --profile ${name}\`, or pass --url`,
      EXIT.usage,
    )
  return placeInStack(name, resolve(stack ?? DEFAULT_STACK), settings)
}

function placeInStack(profile: string, path: string, settings: ReturnType<typeof settingsOf>): Place {
  const { base_url, issuer_url, rpc_url, chain_id, accounts } = readStack(path)
  const index = settings.account ?? 0
  const account = accounts[index]
  if (account === undefined)
    throw new CommandError(
      `--account must be from 0 to ${accounts.length - 1}; received ${index}`,
      EXIT.usage,
    )
  const rotated = join(dirname(path), `account-${index}.key`)
  return {
    profile,
    url: base_url,
    rpcUrl: settings.rpcUrl ?? rpc_url,
    issuerUrl: settings.issuerUrl ?? issuer_url,
    chainId: chain_id,
    keyFile: settings.keyFile,
    apiKeyFile: settings.apiKeyFile ?? (existsSync(rotated) ? rotated : undefined),
    tokenFile: settings.tokenFile,
    stackAccount: account,
  }
}

function checkedUrl(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new CommandError(
      `--url must be an address such as https://api.example.org; received ${url}`,
      EXIT.usage,
    )
  return url.replace(/\/$/, '')
}
