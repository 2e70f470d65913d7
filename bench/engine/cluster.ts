/** A durable Postgres with a prepared state, members of its engine as processes, and clients that stand for api, publisher, ingest and workers. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { migrate } from '../../db/migrator.ts'
import { keysOf } from '../../keeper/engine/link/access.ts'
import { connectEngine, identityOf } from '../../keeper/engine/link/connect.ts'
import type { EngineConnection } from '../../keeper/engine/link/connection.ts'
import type { Engine } from '../../keeper/engine/link/engine.ts'
import { ROLES, type Role } from '../../keeper/engine/link/messages.ts'
import { createLogins } from '../../stack/database-logins.ts'
import { freePort } from '../../stack/ports.ts'
import { type Postgres, startPostgres } from '../../stack/postgres.ts'
import { sealGroups } from '../../test/support/rows/journal.ts'
import { listMarket } from '../../test/support/rows/markets.ts'
import { type StateTerms, storeState } from './state.ts'

const CHAIN_ID = 6343
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const DAY = String(24 * 3600 * 1000)
/** The bench sends reports and passes when its own thread has time for it: their age is not measured. */
const AGES = { ORACLE_MAX_AGE_MS: DAY, CHAIN_MAX_AGE_MS: DAY }
const POLL_MS = 5

export class Cluster {
  readonly db: Db
  readonly pool: pg.Pool
  readonly #dir: string
  readonly #postgres: Postgres
  readonly #engineUrl: string
  readonly #keysFile: string
  readonly #members: Member[] = []
  readonly #clients: EngineConnection[] = []

  private constructor(dir: string, postgres: Postgres, engineUrl: string, keysFile: string) {
    this.#dir = dir
    this.#postgres = postgres
    this.#engineUrl = engineUrl
    this.#keysFile = keysFile
    this.pool = createPool({ url: postgres.url, connections: 2, name: 'bench' })
    this.db = createDb(this.pool)
  }

  /** No member runs yet. */
  static async create(terms: StateTerms): Promise<Cluster> {
    const dir = await mkdtemp(join(tmpdir(), 'clearbatch-bench-'))
    const postgres = await startPostgres({ dir })
    const keysFile = join(dir, 'engine-keys.json')
    const keys = Object.fromEntries(ROLES.map((role) => [role, randomBytes(32).toString('hex')]))
    await writeFile(keysFile, JSON.stringify(keys), { mode: 0o600 })
    const db = createDb(createPool({ url: postgres.url, connections: 1, name: 'bench' }))
    await migrate(db)
    for (const { spec } of terms.markets) await listMarket(db, spec)
    await sealGroups(db)
    await db.destroy()
    const logins = await createLogins(postgres.url)
    const cluster = new Cluster(dir, postgres, logins.engine, keysFile)
    await storeState(cluster.pool, terms)
    return cluster
  }

  /** Resolves when the member answers health checks: it has recovered its state, and follows or owns the journal. */
  async start(env: Record<string, string> = {}): Promise<Member> {
    const path = join(this.#dir, `member-${this.#members.length}`)
    const port = await freePort()
    const member = new Member(path, port, {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: this.#engineUrl,
      CHAIN_ID: String(CHAIN_ID),
      ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
      ENGINE_LISTEN: path,
      ENGINE_KEYS_FILE: this.#keysFile,
      INTERNAL_PORT: String(port),
      LOG_LEVEL: 'warn',
      ...AGES,
      ...env,
    })
    this.#members.push(member)
    await member.ready()
    return member
  }

  /** A client that knows every member, also those that have ended. */
  async connect(role: Role): Promise<Engine> {
    const members = this.#members.map(({ path }) => path)
    const access = { members, keys: keysOf('keys', this.#keysFile, ROLES) }
    const client = connectEngine(await identityOf(this.db, CHAIN_ID), access, role, SILENT)
    this.#clients.push(client)
    await client.ready()
    return client.engine
  }

  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()))
    for (const member of this.#members) await member.end('SIGKILL')
    await this.db.destroy()
    await this.#postgres.stop()
    await rm(this.#dir, { recursive: true, force: true })
  }
}

export class Member {
  readonly path: string
  readonly #child: ChildProcess
  readonly #url: string

  constructor(path: string, port: number, env: Record<string, string>) {
    this.path = path
    this.#url = `http://127.0.0.1:${port}`
    this.#child = spawn(process.execPath, ['keeper/engine/main.ts'], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async ready(): Promise<void> {
    while (!(await this.#isReady())) {
      if (this.#child.exitCode !== null)
        throw new Error(`the engine exited with code ${this.#child.exitCode} before it was ready`)
      await sleep(POLL_MS)
    }
  }

  #isReady = async (): Promise<boolean> =>
    (await fetch(`${this.#url}/health/ready`).catch(() => null))?.ok === true

  metrics = async (): Promise<Metrics> => new Metrics(await (await fetch(`${this.#url}/metrics`)).text())

  /** Bytes of memory: resident now, and at most since the start. */
  memory(): { readonly resident: number; readonly peak: number } {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8')
    const bytes = (field: string): number =>
      1024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
    return { resident: bytes('VmRSS'), peak: bytes('VmHWM') }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const { exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill(signal)
    await ended
  }
}

/** A scrape of Prometheus metrics. */
export class Metrics {
  readonly #samples = new Map<string, number>()

  constructor(scrape: string) {
    for (const line of scrape.split('\n')) {
      const at = line.lastIndexOf(' ')
      if (at > 0 && !line.startsWith('#')) this.#samples.set(line.slice(0, at), Number(line.slice(at + 1)))
    }
  }

  value(sample: string): number {
    return this.#samples.get(sample) ?? Number.NaN
  }

  /**
   * Upper bounds of a histogram's buckets, seconds, with how many observations each has that the former scrape did not have. `label`: of one series, as
   * `class="auction"`.
   */
  bucketsSince(former: Metrics, name: string, label?: string): Bucket[] {
    const prefix = `${name}_bucket{le="`
    const suffix = label === undefined ? '"}' : `",${label}}`
    let below = 0
    return [...this.#samples.keys()]
      .filter((sample) => sample.startsWith(prefix) && sample.endsWith(suffix))
      .map((sample) => {
        const upTo = this.value(sample) - (former.#samples.get(sample) ?? 0)
        const bound = sample.slice(prefix.length, -suffix.length)
        const bucket = {
          bound: bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound),
          count: upTo - below,
        }
        below = upTo
        return bucket
      })
  }
}

export interface Bucket {
  readonly bound: number
  readonly count: number
}

/** Upper bound of the bucket of this rank. */
export function boundAt(buckets: readonly Bucket[], rank: number): number {
  const total = buckets.reduce((sum, { count }) => sum + count, 0)
  let below = 0
  for (const { bound, count } of buckets) {
    below += count
    if (below > 0 && below >= rank * total) return bound
  }
  return Number.NaN
}
