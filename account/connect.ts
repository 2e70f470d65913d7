/** The wallet, the API key and the addresses of a command. Secrets are read from files, never from arguments, which other users can list. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Wallet } from 'ethers'
import { Client } from '../client/client.ts'
import { text, toggle, wholeNumber } from '../service/command-line.ts'
import { readStackFile } from '../stack/stack-file.ts'

export type Env = Readonly<Record<string, string | undefined>>

export const CONNECTION_FLAGS = {
  account: wholeNumber('an account of the local stack: its index in stack.json'),
  stack: text('<file>', 'stack.json of the running stack (default .clearbatch/stack.json)'),
  wallet: text(
    '<file>',
    'private key of the account, or an encrypted keystore (its password in ACCOUNT_PASSWORD)',
  ),
  'api-key-file': text('<file>', 'API key; create-key and rotate-key write the new one to it'),
  url: text('<url>', 'address of the exchange, without a stack'),
  'rpc-url': text('<url>', 'node of the chain, for deposits and withdrawals'),
  'issuer-url': text('<url>', 'identity provider, for create-key'),
  json: toggle('print JSON'),
} as const

export interface ConnectionValues {
  readonly account: number | undefined
  readonly stack: string | undefined
  readonly wallet: string | undefined
  readonly 'api-key-file': string | undefined
  readonly url: string | undefined
  readonly 'rpc-url': string | undefined
  readonly 'issuer-url': string | undefined
  readonly json: boolean
}

export interface Session {
  readonly client: Client
  readonly wallet: Wallet
  readonly baseUrl: string
  readonly issuerUrl: string | undefined
  /** `Key <api key>`; undefined if there is none yet. */
  readonly authorization: string | undefined
  /** Stores a new API key where the next command finds it. Returns the file; null if no file is known. */
  readonly storeKey: (apiKey: string) => string | null
}

const DEFAULT_STACK = '.clearbatch/stack.json'

interface Place {
  readonly wallet: Wallet
  readonly baseUrl: string
  readonly rpcUrl: string | undefined
  readonly issuerUrl: string | undefined
  readonly keyFile: string | null
  /** Of the stack's file, which a rotation does not change. */
  readonly apiKey: string | undefined
}

export async function openSession(values: ConnectionValues, env: Env): Promise<Session> {
  const place =
    values.wallet === undefined ? placeInStack(values) : await placeOfWallet(values, values.wallet, env)
  const { wallet, baseUrl, rpcUrl, issuerUrl, keyFile } = place
  const apiKey = keyFile !== null && existsSync(keyFile) ? readSecret(keyFile) : place.apiKey
  const client = new Client({
    ...{ baseUrl, privateKey: wallet.privateKey },
    ...(rpcUrl === undefined ? {} : { rpcUrl }),
    ...(apiKey === undefined ? {} : { apiKey }),
  })
  return {
    ...{ client, wallet, baseUrl, issuerUrl },
    authorization: apiKey === undefined ? undefined : `Key ${apiKey}`,
    storeKey(fresh) {
      if (keyFile === null) return null
      writeFileSync(keyFile, `${fresh}\n`, { mode: 0o600 })
      return keyFile
    },
  }
}

function placeInStack(values: ConnectionValues): Place {
  const path = resolve(values.stack ?? DEFAULT_STACK)
  const stack = readStackFile(path)
  const index = values.account ?? 0
  const account = stack.accounts[index]
  if (account === undefined)
    throw new Error(`--account must be from 0 to ${stack.accounts.length - 1}, not ${index}`)
  return {
    wallet: new Wallet(account.private_key),
    baseUrl: stack.base_url,
    rpcUrl: stack.rpc_url,
    issuerUrl: stack.issuer_url,
    keyFile: values['api-key-file'] ?? join(dirname(path), `account-${index}.key`),
    apiKey: account.api_key,
  }
}

async function placeOfWallet(values: ConnectionValues, file: string, env: Env): Promise<Place> {
  if (values.url === undefined) throw new Error('--wallet requires --url, the address of the exchange')
  return {
    wallet: await readWallet(file, env),
    baseUrl: values.url,
    rpcUrl: values['rpc-url'],
    issuerUrl: values['issuer-url'],
    keyFile: values['api-key-file'] ?? null,
    apiKey: undefined,
  }
}

const readSecret = (file: string): string => readFileSync(file, 'utf8').trim()

async function readWallet(file: string, env: Env): Promise<Wallet> {
  const content = readSecret(file)
  if (/^(0x)?[0-9a-fA-F]{64}$/.test(content)) return new Wallet(content)
  const { ACCOUNT_PASSWORD: password } = env
  if (!content.startsWith('{')) throw new Error(`${file} has neither a private key nor an encrypted keystore`)
  if (password === undefined) throw new Error(`${file} is encrypted: set ACCOUNT_PASSWORD to its password`)
  return (await Wallet.fromEncryptedJson(content, password)) as Wallet
}
