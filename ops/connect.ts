/** What an operator's command connects to: a running local stack, or the chain, the database and the key named by the environment. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { JsonRpcProvider, type Provider, type Signer, Wallet } from 'ethers'
import { createDb, createPool, type Db } from '../db/client.ts'
import { loadListedMarkets } from '../db/terms.ts'
import type { MarketTerms } from '../domain/market/in-force.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { openAdmin } from '../stack/admin.ts'

/** An error of which the command prints only the message. */
export class OpsError extends Error {
  override readonly name = 'OpsError'
}

export interface Connection {
  readonly provider: Provider
  readonly db: Db
  /** Null without a key: the command can only print. */
  readonly signer: (Signer & { readonly address: string }) | null
  close(): Promise<void>
}

export interface OpsMarket {
  readonly listed: MarketSpec
  readonly terms: MarketTerms
}

export type Env = Readonly<Record<string, string | undefined>>

/** `stack`: stack.json of a running stack, whose deployer has every role; null: the environment. */
export const connect = (stack: string | null, env: Env): Promise<Connection> =>
  stack === null ? connectByEnvironment(env) : connectToStack(resolve(stack))

async function connectToStack(path: string): Promise<Connection> {
  const { provider, db, keys, close } = await openAdmin(path)
  return { provider, db, signer: new Wallet(keys.deployer.privateKey, provider), close }
}

function required(env: Env, name: string): string {
  const value = env[name]
  if (value !== undefined && value !== '') return value
  throw new OpsError(
    `${name} is not set: set DATABASE_URL (of the database's owner), RPC_URL for commands on markets, or pass --stack with the stack.json of a running stack`,
  )
}

async function connectByEnvironment(env: Env): Promise<Connection> {
  const provider = new JsonRpcProvider(required(env, 'RPC_URL'), undefined, { staticNetwork: true })
  const url = required(env, 'DATABASE_URL')
  const key = await keyOf(env)
  const db = createDb(createPool({ url, connections: 2, name: 'clearbatch ops' }))
  return {
    provider,
    db,
    signer: key?.connect(provider) ?? null,
    async close() {
      provider.destroy()
      await db.destroy()
    },
  }
}

/** For commands that need the database alone. */
export async function connectDatabase(
  stack: string | null,
  env: Env,
): Promise<Pick<Connection, 'db' | 'close'>> {
  if (stack !== null) return openAdmin(resolve(stack))
  const db = createDb(
    createPool({ url: required(env, 'DATABASE_URL'), connections: 2, name: 'clearbatch ops' }),
  )
  return { db, close: () => db.destroy() }
}

/** No error repeats a key or a password. */
async function keyOf(env: Env) {
  const { OPS_KEY: text = '', OPS_KEYSTORE: file = '', OPS_KEYSTORE_PASSWORD: password } = env
  if (text !== '') {
    if (!/^0x[0-9a-fA-F]{64}$/.test(text))
      throw new OpsError('OPS_KEY is no private key: expected 0x and 64 hexadecimal digits')
    return new Wallet(text)
  }
  if (file === '') return null
  if (password === undefined)
    throw new OpsError('OPS_KEYSTORE_PASSWORD is not set: the keystore file of OPS_KEYSTORE is encrypted')
  const json = readKeystore(file)
  try {
    return await Wallet.fromEncryptedJson(json, password)
  } catch {
    throw new OpsError(`OPS_KEYSTORE names ${file}, which OPS_KEYSTORE_PASSWORD does not decrypt`)
  }
}

function readKeystore(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new OpsError(
      `OPS_KEYSTORE names ${file}, which cannot be read: ${(error as NodeJS.ErrnoException).code}`,
    )
  }
}

export async function marketOf({ db }: Connection, symbol: string): Promise<OpsMarket> {
  const markets = await loadListedMarkets(db)
  const found = markets.find(({ listed }) => listed.symbol === symbol)
  if (found !== undefined) return found
  const symbols = markets.map(({ listed }) => listed.symbol).join(', ')
  throw new OpsError(`--market must be one of ${symbols}; received ${symbol}`)
}
