/** A fixture with a real API on a database of its own: markets, oracle prices, users with balances, signed orders. */

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { id, type TypedDataDomain, TypedDataEncoder, Wallet } from 'ethers'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { type Api, compose } from '../../../api/compose.ts'
import { type Config, readConfig } from '../../../api/config.ts'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { ACCOUNTS_SHARD, type JournalRow } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { projectAll, projectShards } from '../../../indexer/project/project-shards.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import { createLogger } from '../../../service/logger.ts'
import { AdoptingEngine } from '../../support/adopting-engine.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { PATIENCE } from '../../support/patience.ts'
import { freshDatabase, loginOf } from '../../support/postgres.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { connectTo } from './connections.ts'

export interface User {
  readonly userId: number
  readonly wallet: Wallet
  readonly address: string
  readonly apiKey: string
}

/** Terms of a placement in human units, with defaults for omitted fields. */
export interface OrderTerms {
  readonly market?: MarketSpec
  readonly side?: 'LONG' | 'SHORT'
  readonly type?: string
  readonly price?: string
  readonly trigger?: string
  readonly quantity?: string
  readonly leverage?: number
  readonly reduceOnly?: boolean
  readonly expiration?: number
  readonly salt?: bigint
  /** The session key that signs instead of the owner. */
  readonly signer?: Wallet
}

/** Differences between the signed and the sent order. */
export interface Forgery {
  readonly message?: Record<string, unknown>
  readonly domain?: TypedDataDomain
  readonly types?: Record<string, { name: string; type: string }[]>
  readonly sign?: (digest: string, wallet: Wallet) => string
}

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies by name
  readonly body: any
  readonly headers: IncomingHttpHeaders | OutgoingHttpHeaders
}

export const ORDER_TYPES = {
  Order: [
    { name: 'flags', type: 'bytes8' },
    { name: 'quantity', type: 'uint128' },
    { name: 'price', type: 'uint128' },
    { name: 'triggerPrice', type: 'uint128' },
    { name: 'triggerCondition', type: 'uint8' },
    { name: 'leverage', type: 'uint128' },
    { name: 'maker', type: 'address' },
    { name: 'expiration', type: 'uint128' },
  ],
}

const asPersonalMessage = (digest: string, wallet: Wallet): string =>
  `${wallet.signMessageSync(Buffer.from(digest.slice(2), 'hex'))}01`

let nextSalt = 1n

export const flagsOf = (salt: bigint, side: string, reduceOnly: boolean): string =>
  `0x${((salt << 4n) | (side === 'LONG' ? 1n : 0n) | (reduceOnly ? 2n : 0n)).toString(16).padStart(16, '0')}`

/** The trigger condition by the contract with traders; STOP_LOSS as STOP. */
function conditionOf(type: string, side: string): number {
  if (type === 'MARKET' || type === 'LIMIT') return 0
  return type.startsWith('TAKE_PROFIT') === (side === 'LONG') ? 2 : 1
}

/** A request body, signed with ethers: independent of the exchange's own hashing. */
export function signedBody(user: User, terms: OrderTerms = {}, forgery: Forgery = {}) {
  const { market = perpetual, side = 'LONG', type = 'LIMIT', reduceOnly = false } = terms
  const { quantity = '1', leverage = 1, expiration = 0, salt = nextSalt++ } = terms
  const price = terms.price ?? (type.endsWith('MARKET') ? '0' : '100')
  const { trigger = '0' } = terms
  const message = {
    flags: flagsOf(salt, side, reduceOnly),
    quantity: e18(quantity),
    price: e18(price),
    triggerPrice: e18(trigger),
    triggerCondition: conditionOf(type, side),
    leverage: e18(String(leverage)),
    maker: user.address,
    expiration,
    ...forgery.message,
  }
  const domain = {
    name: 'IsolatedTrader',
    version: '2.0',
    chainId: market.chainId,
    verifyingContract: market.trader,
    ...forgery.domain,
  }
  const digest = TypedDataEncoder.hash(domain, forgery.types ?? ORDER_TYPES, message)
  return {
    hash: digest,
    body: {
      market_id: market.marketId as number,
      side,
      order_type: type,
      price,
      quantity,
      ...(trigger === '0' ? {} : { trigger_price: trigger }),
      leverage,
      expiration_seconds: expiration,
      reduce_only: reduceOnly,
      salt: salt.toString(),
      signature: (forgery.sign ?? asPersonalMessage)(digest, terms.signer ?? user.wallet),
      signature_type: 1,
    } as Record<string, unknown>,
  }
}

const ENV = {
  CHAIN_ID: '6343',
  ADDRESS_USDM: `0x${'aa'.repeat(20)}`,
  ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
  ADDRESS_ACCOUNT_MANAGER: `0x${'cc'.repeat(20)}`,
  ADDRESS_FORWARDER: `0x${'dd'.repeat(20)}`,
  // A fixture calls the engine in its own process; a process of its own has the address of a served one.
  ENGINE_URL: '/nowhere/engine',
  ENGINE_KEYS_FILE: join(import.meta.dirname, '../../support/engine-keys.json'),
  LOG_LEVEL: 'silent',
  INTERNAL_PORT: '0',
  FAUCET: 'on',
  RATE_LIMIT_READS: '100000',
  RATE_LIMIT_ORDERS: '100000',
  RATE_LIMIT_BATCHES: '100000',
  RATE_LIMIT_CANCELS: '100000',
  RATE_LIMIT_FAUCET: '100000',
  RATE_LIMIT_RELAYS: '100000',
  RATE_LIMIT_ADJUSTMENTS: '100000',
  RATE_LIMIT_PROOFS: '100000',
  RATE_LIMIT_ADDRESS: '100000',
  RATE_LIMIT_ACCOUNTS: '1000',
  RATE_LIMIT_AUTH: '100000',
  RATE_LIMIT_AUTH_ADDRESS: '100000',
  RATE_LIMIT_FAILURES: '100000',
  SIGNATURE_EXPLANATIONS: '100000',
  // Freshness is tested with old rows, not by waiting.
  CHAIN_MAX_AGE_MS: '600000',
  PLACEMENT_TARGET_MS: '600000',
  ORACLE_MAX_AGE_MS: '600000',
}

export type Env = Record<string, string>

export const PRICES = new Map([
  [perpetual, '100'],
  [future, '50'],
  [binary, '0.5'],
])

/** The environment of an api process on `url`. */
export const apiEnv = (url: string, env: Env = {}): Env => ({ ...ENV, DATABASE_URL: url, ...env })

export async function seedMarkets(db: Db): Promise<void> {
  for (const [spec, price] of PRICES) {
    await listMarket(db, spec)
    await setOracle(db, spec, price)
  }
  const progress = { chain_id: 6343, genesis_hash: '0x', next_block: 1, head: 0, completed_at: Date.now() }
  await db.insertInto('chain_progress').values(progress).execute()
}

export async function setOracle(
  db: Db,
  spec: MarketSpec,
  price: string,
  observedAt = Date.now(),
): Promise<void> {
  const report = { price: e18(price), observed_at: observedAt, signatures: '0x', received_at: observedAt }
  await db
    .insertInto('oracle_reports')
    .values({ market_id: spec.marketId, ...report })
    .onConflict((conflict) => conflict.columns(['market_id', 'feed']).doUpdateSet(report))
    .execute()
}

export async function createUser(db: Db, name: string, free = '1000000'): Promise<User> {
  const wallet = new Wallet(id(`${name}`))
  const address = wallet.address.toLowerCase()
  const values = { address, created_at: Date.now() }
  const { user_id } = await db
    .insertInto('users')
    .values(values)
    .returning('user_id')
    .executeTakeFirstOrThrow()
  await withMirror(db)
    .insertInto('accounts')
    .values({ user_id, free: e18(free) })
    .execute()
  await db.transaction().execute(async (tx) => {
    const shard = await lockShard(tx, ACCOUNTS_SHARD)
    const created: JournalRow = { kind: 'user_created', user_id, address, at: values.created_at }
    await appendRows(tx, shard, [created, deposited(user_id, e18(free))])
  })
  return { userId: user_id, wallet, address, apiKey: await createApiKey(db, user_id) }
}

const deposited = (user_id: number, free: bigint): JournalRow => ({
  kind: 'balance_changed',
  cause: 'deposit',
  rollback: false,
  user_id,
  free_delta: free.toString(),
  pending_withdrawal_delta: '0',
  block: 1,
  tx_hash: '0x',
  log_index: user_id,
  at: Date.now(),
})

const answerOf = (status: number, headers: Answer['headers'], body: string): Answer => ({
  status,
  body: headers['content-type']?.toString().includes('json') ? JSON.parse(body) : body,
  headers,
})

/** Requests that the order lane may answer: they arrive over a connection. */
const isCommand = (method: string, path: string): boolean =>
  method === 'POST' && path.startsWith('/v0/orders')

/** Status and error code. */
export const codeOf = ({ status, body }: Answer) => [status, body.details?.code]

export interface ExchangeFixture {
  readonly api: Api
  readonly db: Db
  readonly url: string
  /** Decides the api's commands. */
  readonly engine: AdoptingEngine
  /** Sends `body` as JSON; a string is sent unchanged. */
  send(
    user: User | null,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: unknown,
    headers?: Env,
  ): Promise<Answer>
  get(user: User | null, path: string): Promise<Answer>
  place(user: User, terms?: OrderTerms): Promise<Answer>
  cancel(user: User, hash: string, body?: unknown): Promise<Answer>
  /** The api's metrics, as Prometheus reads them. */
  metrics(): Promise<string>
  /** All rows that a placement can change, to compare before and after a rejection. */
  state(): Promise<unknown>
  /** Projects the journal to its head; only the named shards if any are named. */
  project(...shards: string[]): Promise<void>
  stop(): Promise<void>
}

/** Settings beside those of the environment: the values are not checked, so a wait may exceed the bound of a drain. */
type Settings = Partial<Config>

/** `database`: URL for the test itself, if `env` contains another URL for the API. */
export async function startExchange(
  env: Env = {},
  database?: string,
  settings: Settings = {},
): Promise<ExchangeFixture> {
  const url = database ?? (await freshDatabase())
  const db = createDb(createPool({ url, connections: 4, name: 'test', idleInTransactionMs: 0 }))
  await seedMarkets(db)
  return startApi({ db, url, engine: new AdoptingEngine(db) }, env, settings)
}

/** A second API on the same database. It sends its commands to `commands`. */
export const startSecondApi = (
  { url, engine }: ExchangeFixture,
  env: Env = {},
  settings: Settings = {},
  commands: Engine = engine,
): Promise<ExchangeFixture> => {
  const db = createDb(createPool({ url, connections: 2, name: 'second api test', idleInTransactionMs: 0 }))
  return startApi({ db, url, engine }, env, settings, commands)
}

type Started = Pick<ExchangeFixture, 'db' | 'url' | 'engine'>

async function startApi(
  { db, url, engine }: Started,
  env: Env,
  settings: Settings,
  commands: Engine = engine,
): Promise<ExchangeFixture> {
  const login = await loginOf(env.DATABASE_URL ?? url, 'api')
  const read = readConfig({ ...apiEnv(url, env), DATABASE_URL: login })
  // A command that waits for a busy machine is not refused, unless the test chooses the bound.
  const commandTimeoutMs = (env.COMMAND_TIMEOUT_MS === undefined ? PATIENCE : 1) * read.commandTimeoutMs
  const config = { ...read, commandTimeoutMs, ...settings }
  const api = await compose(config, createLogger('api', config.logLevel), commands)
  await api.app.ready()
  const connections = await connectTo(api.app.server)

  const send: ExchangeFixture['send'] = async (user, method, path, body, headers = {}) => {
    const authorization = user === null ? {} : { authorization: `Key ${user.apiKey}` }
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const all = { ...authorization, ...type, ...headers }
    if (isCommand(method, path)) {
      const answer = await connections.post(path, all, text)
      return answerOf(answer.status, answer.headers, answer.body)
    }
    const payload = text === undefined ? {} : { payload: text }
    const answer = await api.app.inject({ method, url: path, headers: all, ...payload })
    return answerOf(answer.statusCode, answer.headers, answer.body)
  }
  return {
    api,
    db,
    url,
    engine,
    send,
    get: (user, path) => send(user, 'GET', path),
    place: (user, terms) => send(user, 'POST', '/v0/orders', signedBody(user, terms).body),
    cancel: (user, hash, body) => send(user, 'POST', `/v0/orders/cancel/by-hash/${hash}`, body),
    metrics: async () => (await fetch(`http://127.0.0.1:${api.internalPort}/metrics`)).text(),
    state: async () => ({
      orders: await db.selectFrom('orders').selectAll().orderBy('order_id').execute(),
      accounts: await withMirror(db).selectFrom('accounts').selectAll().orderBy('user_id').execute(),
      shards: await db.selectFrom('shards').selectAll().orderBy('shard').execute(),
      journal: await db
        .selectFrom('journal')
        .select(['shard', 'seq'])
        .orderBy('shard')
        .orderBy('seq')
        .execute(),
    }),
    async project(...shards) {
      const options = { limit: 1000, killPoint: () => {} }
      if (shards.length === 0) await projectAll(db, options)
      for (const shard of shards) await projectShards(db, [shard], options)
    },
    async stop() {
      connections.close()
      await api.stop()
      await db.destroy()
    },
  }
}
