/** Connects an operator's command to a running local stack, or to chain, database and key of the environment. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { JsonRpcProvider, type Provider, type Signer, Wallet } from 'ethers'
import { createDb, createPool, type Db } from '../db/client.ts'
import { checkSchema } from '../db/migrator.ts'
import { loadListedMarkets } from '../db/terms.ts'
import type { MarketTerms } from '../domain/market/in-force.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { engineAccess } from '../keeper/engine/link/access.ts'
import { environment } from '../service/environment.ts'
import { openAdmin } from '../stack/admin.ts'
import { OpsError } from './error.ts'
import { type OperatorAccess, type Settings, settingsOf } from './settings.ts'

export interface DatabaseConnection {
  readonly db: Db
  /** Login of the database's owner. */
  readonly url: string
  readonly settings: Settings
  close(): Promise<void>
}

export interface Connection extends DatabaseConnection {
  readonly provider: Provider
  /** Null without a key: the command can only print. */
  readonly signer: (Signer & { readonly address: string }) | null
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
  const { provider, db, databaseUrl: url, engine, keys, close } = await openAdmin(path)
  const signer = new Wallet(keys.deployer.privateKey, provider)
  return { provider, db, url, settings: settingsOf(db, () => engine), signer, close }
}

function required(env: Env, name: string): string {
  const value = env[name]
  if (value !== undefined && value !== '') return value
  throw new OpsError(
    `${name} is not set: set DATABASE_URL (of the database's owner), RPC_URL for commands on markets, or pass --stack with the stack.json of a running stack`,
  )
}

async function connectByEnvironment(env: Env): Promise<Connection> {
  const rpcUrl = required(env, 'RPC_URL')
  required(env, 'DATABASE_URL')
  const key = await keyOf(env)
  const { db, url, settings, close } = databaseOf(env)
  const provider = new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true })
  return {
    provider,
    db,
    url,
    settings,
    signer: key?.connect(provider) ?? null,
    async close() {
      provider.destroy()
      await close()
    },
  }
}

/** `ENGINE_URL` and `ENGINE_KEYS_FILE`: the engine that changes settings; commands that only read need neither. */
function databaseOf(env: Env): DatabaseConnection {
  required(env, 'DATABASE_URL')
  const url = addressIn(env)
  const db = createDb(createPool({ url, connections: 2, name: 'clearbatch ops' }))
  return { db, url, settings: settingsOf(db, () => operatorAccess(env)), close: () => db.destroy() }
}

/** Throws an OpsError. */
function addressIn(env: Env): string {
  try {
    return environment(env, 'command').database()
  } catch (error) {
    throw new OpsError((error as Error).message)
  }
}

/** Throws an OpsError. */
function operatorAccess(env: Env): OperatorAccess {
  try {
    return engineAccess(env, 'command', ['operator'])
  } catch (error) {
    throw new OpsError((error as Error).message)
  }
}

/** For commands that need the database alone. */
export async function connectDatabase(stack: string | null, env: Env): Promise<DatabaseConnection> {
  if (stack === null) return databaseOf(env)
  const { db, databaseUrl: url, engine, close } = await openAdmin(resolve(stack))
  return { db, url, settings: settingsOf(db, () => engine), close }
}

/** Runs the work once the database has the schema of this version, and closes the connection. */
export async function onDatabase(
  stack: string | null,
  env: Env,
  work: (connection: DatabaseConnection) => Promise<void>,
): Promise<void> {
  const connection = await connectDatabase(stack, env)
  try {
    await checkSchema(connection.db)
    await work(connection)
  } finally {
    await connection.close()
  }
}

/** No error repeats a key or a password. */
async function keyOf(env: Env) {
  const { OPS_KEY: text = '', OPS_KEYSTORE: file = '' } = env
  if (text !== '') {
    if (!/^0x[0-9a-fA-F]{64}$/.test(text))
      throw new OpsError('OPS_KEY is no private key: expected 0x and 64 hexadecimal digits')
    return new Wallet(text)
  }
  if (file === '') return null
  const { variable, password } = passwordOf(env)
  const json = readFile('OPS_KEYSTORE', file)
  try {
    return await Wallet.fromEncryptedJson(json, password)
  } catch {
    throw new OpsError(`OPS_KEYSTORE names ${file}, which ${variable} does not decrypt`)
  }
}

function passwordOf(env: Env): { readonly variable: string; readonly password: string } {
  const { OPS_KEYSTORE_PASSWORD: password, OPS_KEYSTORE_PASSWORD_FILE: file = '' } = env
  if (file !== '') {
    const variable = 'OPS_KEYSTORE_PASSWORD_FILE'
    return { variable, password: readFile(variable, file).replace(/\r?\n$/, '') }
  }
  if (password !== undefined) return { variable: 'OPS_KEYSTORE_PASSWORD', password }
  throw new OpsError(
    'OPS_KEYSTORE_PASSWORD_FILE is not set: the keystore file of OPS_KEYSTORE is encrypted; expected that file, or OPS_KEYSTORE_PASSWORD',
  )
}

function readFile(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new OpsError(
      `${variable} names ${file}, which cannot be read: ${(error as NodeJS.ErrnoException).code}`,
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
