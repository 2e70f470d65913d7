/** Commands on credentials: signing in, the API key, session keys. */
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createApiKey, rotateApiKey } from '../../client/api-keys.ts'
import { signIn } from '../../client/sign-in.ts'
import { addressOfKey, randomKey } from '../../client/signers/private-key-signer.ts'
import { configFolder, type Profile, readConfig, saveProfile, writePrivately } from '../config.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { authorizeInBrowser } from '../oauth.ts'
import { DEFAULT_STACK, readStack } from '../place.ts'
import { STDIN } from '../secrets.ts'
import { given } from './account.ts'

interface Login {
  readonly scope: 'trade' | 'read' | undefined
  readonly client: string | undefined
}

/** Stores where the exchange is and where the secrets are, after the exchange has accepted them. */
export async function login(context: Context, { client: clientId }: Login) {
  const { flags, env } = context
  const name =
    flags.profile ?? (env.CLEARBATCH_PROFILE || undefined) ?? (flags.url === undefined ? 'local' : 'custom')
  const saved = readConfig(env).profiles[name] ?? {}
  const isLocal = name === 'local' && flags.url === undefined
  const profile = isLocal ? localProfile(context) : await remoteProfile(context, name, saved, clientId)
  const file = saveProfile(env, name, profile)
  context.forgetPlace()
  const { credential, address, scope } = await context.reader().account.me()
  return { profile: name, config: file, address, credential, scope, chain_id: profile.chain_id }
}

function localProfile({ flags, env }: Context): Profile {
  const stack = resolve(flags.stack ?? (env.CLEARBATCH_STACK || undefined) ?? DEFAULT_STACK)
  const { chain_id, accounts } = readStack(stack)
  const account = flags.account ?? 0
  if (accounts[account] === undefined)
    throw new CommandError(
      `--account must be from 0 to ${accounts.length - 1}; received ${account}`,
      EXIT.usage,
    )
  return { stack, account, chain_id }
}

async function remoteProfile(
  context: Context,
  name: string,
  saved: Profile,
  clientId: string | undefined,
): Promise<Profile> {
  const { flags, env, terminal } = context
  const url =
    flags.url ?? saved.url ?? (await terminal.ask(`Address of the exchange for the profile ${name}: `))
  Object.assign(flags, { url })
  const { chain_id } = await context.anonymous().marketData.contracts()
  if (saved.chain_id === undefined) terminal.note(`${url} is on chain ${chain_id}.`)
  else if (saved.chain_id !== chain_id)
    terminal.note(
      `warning: ${url} is on chain ${chain_id} now; the profile ${name} was on chain ${saved.chain_id}`,
    )
  const common: Profile = {
    url,
    chain_id,
    ...given({
      rpc_url: flags['rpc-url'] ?? saved.rpc_url,
      issuer_url: flags['issuer-url'] ?? saved.issuer_url,
      key_file: absolute(flags['key-file'] ?? saved.key_file),
    }),
  }
  const apiKeyFile = absolute(flags['api-key-file'])
  if (apiKeyFile !== undefined) return { ...common, api_key_file: apiKeyFile }
  const tokenFile = absolute(flags['token-file'])
  if (tokenFile !== undefined) return { ...common, token_file: tokenFile }
  const issuerUrl = common.issuer_url ?? (await terminal.ask('Address of the identity provider (issuer): '))
  const { accessToken } = await authorizeInBrowser({
    issuerUrl,
    clientId: clientId ?? 'clearbatch-command',
    show: (address) => terminal.note(`Open this address to sign in:\n${address}`),
    stopping: context.stopping,
    opens: !env.CLEARBATCH_NO_BROWSER,
  })
  const stored = join(configFolder(env), `${name}.token`)
  writePrivately(stored, `${accessToken}\n`)
  Object.assign(flags, { 'token-file': stored })
  return { ...common, issuer_url: issuerUrl, token_file: stored }
}

/** A profile names the file of a secret for later commands. */
function absolute(file: string | undefined): string | undefined {
  if (file === STDIN)
    throw new CommandError('a profile cannot name standard input: pass a file, or skip the login', EXIT.usage)
  return file === undefined ? undefined : resolve(file)
}

export const whoami = async (context: Context) => context.reader().account.me()

interface KeyOptions {
  readonly scope: 'trade' | 'read' | undefined
  readonly allow: string | undefined
  readonly 'new-api-key-file': string | undefined
}

async function rotate(context: Context, authorization: string, options: KeyOptions) {
  const { scope, allow } = options
  const { place } = context
  const current = place.apiKeyFile === STDIN ? undefined : place.apiKeyFile
  const file = options['new-api-key-file'] ?? current ?? newKeyFile(context)
  const { api_key, ...facts } = await rotateApiKey({
    baseUrl: place.url,
    authorization,
    wallet: await context.signer(),
    ...given({ scope, allowedAddresses: allow?.split(',').map((network) => network.trim()) }),
  })
  writePrivately(file, `${api_key}\n`)
  return { api_key_file: file, ...facts }
}

/** Beside stack.json, where the next command finds it, or in the config folder. */
function newKeyFile(context: Context): string {
  const { place, flags, env } = context
  const { stack = flags.stack ?? (env.CLEARBATCH_STACK || undefined) ?? DEFAULT_STACK, account = 0 } =
    readConfig(env).profiles[place.profile] ?? {}
  const index = flags.account ?? account
  if (place.stackAccount !== undefined)
    return join(resolve(flags.stack ?? stack), '..', `account-${index}.key`)
  return join(configFolder(env), `${place.profile}.api-key`)
}

/** Signs in with the wallet at the local stack's identity provider; elsewhere an access token is needed. */
export async function createKey(context: Context, options: KeyOptions) {
  const { issuerUrl, tokenFile } = context.place
  if (tokenFile !== undefined) return rotate(context, context.authorization(), options)
  if (issuerUrl === undefined)
    throw new CommandError(
      'creating an API key needs --issuer-url, the identity provider, or --token-file with an access token',
      EXIT.usage,
    )
  const { accessToken } = await signIn({ issuerUrl, wallet: await context.signer() })
  return rotate(context, `Bearer ${accessToken}`, options)
}

export const rotateKey = async (context: Context, options: KeyOptions) =>
  rotate(context, context.authorization(), options)

export const apiKeys = async (context: Context) => context.reader().account.apiKeys()

/** The file is checked before the key is created: a key that cannot be stored would be lost. */
export async function createNamedKey(
  context: Context,
  {
    positionals: [name = ''],
    scope,
    allow,
    'new-api-key-file': file,
  }: KeyOptions & { readonly positionals: readonly string[] },
) {
  if (file === undefined)
    throw new CommandError('expected --new-api-key-file: the key is shown once', EXIT.usage)
  if (existsSync(file)) throw new CommandError(`${file} exists: expected a new file for the API key`)
  const { api_key, ...facts } = await createApiKey({
    baseUrl: context.place.url,
    authorization: context.authorization(),
    wallet: await context.signer(),
    name,
    ...given({ scope, allowedAddresses: allow?.split(',').map((network) => network.trim()) }),
  })
  writePrivately(file, `${api_key}\n`)
  return { api_key_file: file, ...facts }
}

export async function revokeApiKey(
  context: Context,
  { positionals: [name = ''] }: { readonly positionals: readonly string[] },
) {
  await context.reader().account.revokeApiKey(name)
  return { revoked: name }
}

export const sessionKeys = async (
  context: Context,
  { status }: { readonly status: 'ACTIVE' | 'EXPIRED' | 'REVOKED' | undefined },
) => (await context.reader().sessionKeys.list(given({ status }))).session_keys

interface Register {
  readonly positionals: readonly string[]
  readonly 'new-key-file': string | undefined
}

export async function registerSessionKey(context: Context, { positionals: [address], ...options }: Register) {
  const file = options['new-key-file']
  if ((address === undefined) === (file === undefined))
    throw new CommandError('expected either the address of the key or --new-key-file', EXIT.usage)
  const client = await context.signing()
  return client.sessionKeys.register(address ?? freshKey(file as string))
}

/** The address of a fresh key, whose private key is stored before it is registered. */
function freshKey(file: string): string {
  if (existsSync(file)) throw new CommandError(`${file} exists: expected a new file for the session key`)
  const key = randomKey()
  writeFileSync(file, `${key}\n`, { mode: 0o600, flag: 'wx' })
  return addressOfKey(key)
}

export const revokeSessionKey = async (
  context: Context,
  { positionals: [address = ''] }: { readonly positionals: readonly string[] },
) => (await context.signing()).sessionKeys.revoke(address)
