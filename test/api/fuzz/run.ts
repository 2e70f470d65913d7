/** Sends generated requests to a real api with Postgres and checks that none is executed, fails inside or hangs. */
import { sql } from 'kysely'
import { createApiKey } from '../../../api/auth/credentials.ts'
import type { Db } from '../../../db/client.ts'
import { seizeLease } from '../../../db/leases.ts'
import { ADJUSTMENT_LANE } from '../../../db/relayers.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { perpetual } from '../../support/markets.ts'
import { descriptionOf } from '../support/description.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { ForwardFixture, MANAGER } from '../support/forward-fixture.ts'
import { IdentityProvider } from '../support/identity-provider.ts'
import { type FuzzRequest, Generator, type Known, type Operation, type Schema } from './generate.ts'

/** The operations of a run: those about credentials and accounts, or all others. */
export const AREAS = ['accounts', 'markets'] as const
export type Area = (typeof AREAS)[number]
const OF_ACCOUNTS = /^\/v0\/(auth|me|session-keys|account|faucet|balance|users|positions)\b/
/** Operations with a body that may succeed: those that only compute, and those whose effect `checkBounded` bounds. */
const MAY_SUCCEED = new Set([
  ...['/v0/auth/challenge', '/v0/faucet', '/v0/session-keys/prepare'],
  ...['/v0/orders/validate', '/v0/orders/estimate', '/v0/orders/calculate-quantity'],
])
/** Most rows of an account in the tables that these effects change: five challenges per kind of credential, one open payout. */
const BOUNDED = { auth_challenges: 10, faucet_requests: 1 } as const
export const HANG_MS = 15_000
/** How many requests are in flight. */
const PARALLEL = 8

/** Errors of a request as a whole, which have no field. */
const WITHOUT_FIELD = new Set([
  ...[
    'INVALID_JSON',
    'MALFORMED_REQUEST',
    'BODY_TOO_LARGE',
    'UNSUPPORTED_CONTENT_TYPE',
    'UNSUPPORTED_ENCODING',
  ],
])

export interface FuzzReport {
  readonly sent: number
  /** Answers by status and code. */
  readonly answers: ReadonlyMap<string, number>
  readonly operations: number
  /** One line per problem, at most twenty. */
  readonly problems: readonly string[]
}

interface Described {
  readonly parameters?: Operation['parameters']
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

async function operationsOf(exchange: ExchangeFixture, area: Area): Promise<Operation[]> {
  const { paths } = (await descriptionOf(exchange)) as {
    paths: Record<string, Record<string, Described>>
  }
  return Object.entries(paths)
    .filter(([path]) => OF_ACCOUNTS.test(path) === (area === 'accounts'))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
        ...{ method: method.toUpperCase() as 'GET' | 'POST', path, parameters },
        body: requestBody?.content['application/json']?.schema ?? null,
        maySucceed: MAY_SUCCEED.has(path),
      })),
    )
}

/** A digest of every row of every table without bounded effects. The use of a key is noted in its row, and is no effect of a request. */
async function digest(db: Db): Promise<Record<string, string>> {
  const { rows } = await sql<{ name: string }>`
    select schemaname || '.' || tablename as name from pg_tables where schemaname in ('public', 'read') order by 1
  `.execute(db)
  const digests: Record<string, string> = {}
  for (const { name } of rows.filter(({ name }) => !(name.replace('public.', '') in BOUNDED))) {
    const content = await sql<{ digest: string | null }>`
      select md5(string_agg(line, ',' order by line)) as digest from (
        select (to_jsonb(t) - 'last_used_at')::text as line from ${sql.table(name)} t
      ) lines
    `.execute(db)
    digests[name] = content.rows[0]?.digest ?? ''
  }
  return digests
}

/** `challenges` are the ids of open challenges. */
const knownOf = (user: User, other: User, challenges: readonly string[]): Known => ({
  user_id: [user.userId, other.userId, 999_999],
  address: [user.address, user.wallet.address, other.address],
  from: [user.address, '1970-01-01T00:00:00Z', '2026-11-22T13:00:00.000Z'],
  to: [MANAGER, perpetual.trader, '2026-11-22T13:00:00.000Z'],
  session_public_address: [other.address, user.address, `0x${'42'.repeat(20)}`],
  symbol: [perpetual.symbol, 'NONE'],
  gas: [150_000, 79_999, 2 ** 31],
  data: [
    AccountManager__factory.createInterface().encodeFunctionData('registerSessionKey', [other.address, 3]),
    '0x',
  ],
  market_id: [1, 2, 99],
  deadline: [Math.floor(Date.now() / 1000) + 60, 1],
  nonce: [0, 1, 7],
  amount: ['1', 1, '-1', -1, '0', '0.000000000000000001'],
  min_amount: ['0', 0],
  leverage: [1, 5],
  operation: ['register', 'revoke'],
  approved: [true, false],
  action: ['rotate_api_key', 'other'],
  challenge_id: challenges,
  read_after_shard_id: ['accounts.1', 'm1.1', 'm1.0', 'm999.1'],
  read_after_shard_seq: ['0', '1'],
  limit: [1, 1000],
  topics: [['market.1.book'], ['markets'], ['account.orders'], ['market.99.trades', 'x']],
  cursor_created_at: ['2026-11-22T13:00:00.000Z', '1970-01-01T00:00:00Z'],
  cursor_id: ['0x1-1-1', '1-000000000001-1'],
})

/** Relays and adjustments are accepted, as with a keeper that runs their lanes. */
async function openLanes(exchange: ExchangeFixture): Promise<void> {
  await new ForwardFixture(exchange).openLane()
  const lease = { name: ADJUSTMENT_LANE, owner: 'keeper', now: Date.now(), lifeMs: 86_400_000 }
  await seizeLease(exchange.db, lease)
}

export interface FuzzSetting {
  readonly exchange: ExchangeFixture
  readonly generator: Generator
  readonly run: FuzzRun
  /** Authorization headers: of two accounts, of a read-only key, and an identity token. */
  readonly credentials: readonly string[]
}

/** Runs `work` against a new exchange and checks that it changed nothing. `work` returns the number of operations. */
export async function onExchange(
  count: number,
  seed: number,
  work: (setting: FuzzSetting) => Promise<number>,
): Promise<FuzzReport> {
  const provider = await IdentityProvider.start()
  const exchange = await startExchange({
    ...{ TRUST_PROXY: '1', READ_AFTER_WAIT_MS: '50', FAUCET_WAIT_MS: '50', RELAY_WAIT_MS: '50' },
    ...{ ADJUSTMENT_WAIT_MS: '50', LIVE_MESSAGES: '100000', ...provider.env },
  })
  try {
    await openLanes(exchange)
    const [alice, bob] = [await createUser(exchange.db, 'alice'), await createUser(exchange.db, 'bob')]
    const { userId: reader } = await createUser(exchange.db, 'reader')
    await exchange.project()
    const readOnly = await createApiKey(exchange.db, reader, { scope: 'read', allowed_addresses: null })
    const exp = Math.floor(Date.now() / 1000) + 86_400
    const token = await provider.token({ wallet_address: alice.address, exp })
    const credentials = [`Key ${alice.apiKey}`, `Key ${bob.apiKey}`, `Key ${readOnly}`, `Bearer ${token}`]
    const run = new FuzzRun(exchange, credentials)
    const known = { ...knownOf(alice, bob, run.challenges), authorization: credentials }
    const generator = new Generator(seed, known, credentials)
    const before = await digest(exchange.db)
    const operations = await work({ exchange, generator, run, credentials })
    const after = await digest(exchange.db)
    for (const name of Object.keys(after))
      if (after[name] !== before[name]) run.note(`the rows of ${name} have changed`)
    await run.checkBounded()
    return { sent: count, answers: run.answers, operations, problems: run.problems }
  } finally {
    await exchange.stop()
    provider.stop()
  }
}

export const fuzzRequests = (count: number, seed: number, area: Area): Promise<FuzzReport> =>
  onExchange(count, seed, async ({ exchange, generator, run }) => {
    const operations = await operationsOf(exchange, area)
    for (let sent = 0; sent < count; sent += PARALLEL) {
      const requests = Array.from({ length: Math.min(PARALLEL, count - sent) }, () => {
        const operation = generator.random.of(operations)
        return { operation, request: generator.request(operation) }
      })
      await Promise.all(requests.map(({ operation, request }) => run.check(operation, request)))
    }
    return operations.length
  })

const MOST_PROBLEMS = 20

export class FuzzRun {
  readonly answers = new Map<string, number>()
  readonly problems: string[] = []
  /** Ids of the newest challenges, so that rotations reach the check of their signature. */
  readonly challenges = ['123e4567-e89b-42d3-a456-426614174000']
  readonly #exchange: ExchangeFixture
  readonly #secrets: readonly string[]

  constructor(exchange: ExchangeFixture, credentials: readonly string[]) {
    this.#exchange = exchange
    this.#secrets = credentials.map((credential) => credential.slice(credential.indexOf(' ') + 1))
  }

  count(answer: string): void {
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1)
  }

  hasSecret = (text: string): boolean => this.#secrets.some((secret) => text.includes(secret))

  note(problem: string): void {
    if (this.problems.length < MOST_PROBLEMS) this.problems.push(problem)
  }

  /** The effects of valid bodies stay within the bound of each account. */
  async checkBounded(): Promise<void> {
    for (const [name, most] of Object.entries(BOUNDED)) {
      const { rows } = await sql<{ user_id: number; stored: number }>`
        select user_id, count(*)::int as stored from ${sql.table(name)} group by user_id
      `.execute(this.#exchange.db)
      for (const { user_id, stored } of rows)
        if (stored > most) this.note(`${stored} rows of ${name} for user ${user_id}, at most ${most}`)
    }
  }

  async check({ path, maySucceed }: Operation, request: FuzzRequest): Promise<void> {
    const { url, method, headers, payload } = request
    const asked = `${method} ${url} ${payload ?? ''}`.slice(0, 600)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), HANG_MS)
    })
    const answer = await Promise.race([
      this.#exchange.api.app.inject({
        method: method as 'GET',
        url,
        headers,
        ...(payload === undefined ? {} : { payload }),
      }),
      late,
    ])
    clearTimeout(timer)
    if (answer === null) return this.note(`no answer in ${HANG_MS} ms: ${asked}`)
    const { statusCode: status, body } = answer
    const details = detailsOf(body)
    this.count(`${status} ${details?.code ?? ''}`.trim())
    if (status >= 500 && details?.code === 'INTERNAL') this.note(`500: ${asked}`)
    if (status === 200 && path === '/v0/auth/challenge')
      this.challenges.splice(0, 1, JSON.parse(body).challenge_id)
    if (status < 400 && method !== 'GET' && !maySucceed)
      this.note(`${status}, executed: ${asked} -> ${body.slice(0, 300)}`)
    if (status >= 400 && details?.code === undefined)
      this.note(`${status} without a code: ${asked} -> ${body.slice(0, 300)}`)
    if (status === 400 && details?.field === undefined && !WITHOUT_FIELD.has(details?.code ?? ''))
      this.note(`${details?.code} names no field: ${asked}`)
    if (this.hasSecret(body)) this.note(`the answer contains a credential: ${asked}`)
  }
}

function detailsOf(body: string): { readonly code?: string; readonly field?: string } | undefined {
  try {
    return JSON.parse(body).details
  } catch {
    return undefined
  }
}
