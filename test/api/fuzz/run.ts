/** Sends generated requests to a real api with Postgres and checks that none is executed, fails inside or hangs. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { type FuzzRequest, Generator, type Known, type Operation, type Schema } from './generate.ts'

const PATHS = /^\/v0\/(auth|me|session-keys|account|faucet|balance|users|positions)\b/
const HANG_MS = 15_000
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

async function operationsOf(exchange: ExchangeFixture): Promise<Operation[]> {
  const { paths } = (await exchange.get(null, '/v0/openapi.json')).body as {
    paths: Record<string, Record<string, Described>>
  }
  return Object.entries(paths)
    .filter(([path]) => PATHS.test(path))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
        ...{ method: method.toUpperCase() as 'GET' | 'POST', path, parameters },
        body: requestBody?.content['application/json']?.schema ?? null,
      })),
    )
}

/** A digest of every row of every table. The use of a key is noted in its row, and is no effect of a request. */
async function digest(db: Db): Promise<Record<string, string>> {
  const { rows } = await sql<{ name: string }>`
    select schemaname || '.' || tablename as name from pg_tables where schemaname in ('public', 'read') order by 1
  `.execute(db)
  const digests: Record<string, string> = {}
  for (const { name } of rows) {
    const content = await sql<{ digest: string | null }>`
      select md5(string_agg(line, ',' order by line)) as digest from (
        select (to_jsonb(t) - 'last_used_at')::text as line from ${sql.table(name)} t
      ) lines
    `.execute(db)
    digests[name] = content.rows[0]?.digest ?? ''
  }
  return digests
}

const knownOf = (user: User, other: User): Known => ({
  user_id: [user.userId, other.userId, 999_999],
  address: [user.address, user.wallet.address, other.address],
  from: [user.address, '1970-01-01T00:00:00Z', '2026-11-22T13:00:00.000Z'],
  to: [other.address, '2026-11-22T13:00:00.000Z'],
  session_public_address: [other.address, user.address],
  symbol: ['BTC-PERP', 'NONE'],
  market_id: [1, 2, 99],
  deadline: [Math.floor(Date.now() / 1000) + 60, 1],
  nonce: [0, 1, 7],
  amount: ['1', 1, '-1', -1, '0', '0.000000000000000001'],
  min_amount: ['0', 0],
  leverage: [1, 5],
  operation: ['register', 'revoke'],
  approved: [true, false],
  action: ['rotate_api_key', 'other'],
  challenge_id: ['123e4567-e89b-42d3-a456-426614174000'],
  read_after_shard_id: ['accounts.1', 'm1.1', 'm1.0', 'm999.1'],
  read_after_shard_seq: ['0', '1'],
  limit: [1, 1000],
  cursor_created_at: ['2026-11-22T13:00:00.000Z', '1970-01-01T00:00:00Z'],
  cursor_id: ['0x1-1-1', '1-000000000001-1'],
})

export async function fuzzRequests(count: number, seed: number): Promise<FuzzReport> {
  const exchange = await startExchange({ TRUST_PROXY: '1', READ_AFTER_WAIT_MS: '50', FAUCET_WAIT_MS: '50' })
  try {
    const [alice, bob] = [await createUser(exchange.db, 'alice'), await createUser(exchange.db, 'bob')]
    await exchange.project()
    const operations = await operationsOf(exchange)
    const credentials = [alice, bob].map(({ apiKey }) => `Key ${apiKey}`)
    const generator = new Generator(seed, knownOf(alice, bob), credentials)
    const run = new FuzzRun(exchange, credentials)
    const before = await digest(exchange.db)
    for (let sent = 0; sent < count; sent += PARALLEL) {
      const requests = Array.from({ length: Math.min(PARALLEL, count - sent) }, () =>
        generator.request(generator.random.of(operations)),
      )
      await Promise.all(requests.map((request) => run.check(request)))
    }
    const after = await digest(exchange.db)
    for (const name of Object.keys(after))
      if (after[name] !== before[name]) run.note(`the rows of ${name} have changed`)
    return { sent: count, answers: run.answers, operations: operations.length, problems: run.problems }
  } finally {
    await exchange.stop()
  }
}

const MOST_PROBLEMS = 20

class FuzzRun {
  readonly answers = new Map<string, number>()
  readonly problems: string[] = []
  readonly #exchange: ExchangeFixture
  readonly #secrets: readonly string[]

  constructor(exchange: ExchangeFixture, credentials: readonly string[]) {
    this.#exchange = exchange
    this.#secrets = credentials.map((credential) => credential.slice('Key '.length))
  }

  note(problem: string): void {
    if (this.problems.length < MOST_PROBLEMS) this.problems.push(problem)
  }

  async check(request: FuzzRequest): Promise<void> {
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
    const key = `${status} ${details?.code ?? ''}`.trim()
    this.answers.set(key, (this.answers.get(key) ?? 0) + 1)
    if (status >= 500 && details?.code === 'INTERNAL') this.note(`500: ${asked}`)
    if (status < 400 && method !== 'GET') this.note(`${status}, executed: ${asked} -> ${body.slice(0, 300)}`)
    if (status >= 400 && details?.code === undefined)
      this.note(`${status} without a code: ${asked} -> ${body.slice(0, 300)}`)
    if (status === 400 && details?.field === undefined && !WITHOUT_FIELD.has(details?.code ?? ''))
      this.note(`${details?.code} names no field: ${asked}`)
    if (this.#secrets.some((secret) => body.includes(secret)))
      this.note(`the answer contains a credential: ${asked}`)
  }
}

function detailsOf(body: string): { readonly code?: string; readonly field?: string } | undefined {
  try {
    return JSON.parse(body).details
  } catch {
    return undefined
  }
}
