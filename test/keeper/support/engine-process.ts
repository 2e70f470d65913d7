/** The engine as a process of its own, as it runs in production, and clients in its roles. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { keysOf } from '../../../keeper/engine/link/access.ts'
import { connectEngine, identityOf } from '../../../keeper/engine/link/connect.ts'
import type { EngineConnection } from '../../../keeper/engine/link/connection.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import { ROLES, type Role } from '../../../keeper/engine/link/messages.ts'
import { freePort } from '../../../stack/ports.ts'
import { waitFor } from '../../support/patience.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { sealGroups } from '../../support/rows/journal.ts'

const CHAIN_ID = 6343
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** A database, and any number of members of its engine. */
export class EngineCluster {
  readonly db: Db
  readonly url: string
  readonly #dir = mkdtempSync(join(tmpdir(), 'engine-'))
  readonly #keysFile = join(this.#dir, 'keys.json')
  readonly #processes: EngineProcess[] = []
  readonly #clients: EngineConnection[] = []

  private constructor(url: string) {
    this.url = url
    this.db = createDb(createPool({ url, connections: 4, name: 'test' }))
    const keys = Object.fromEntries(ROLES.map((role) => [role, randomBytes(32).toString('hex')]))
    writeFileSync(this.#keysFile, JSON.stringify(keys), { mode: 0o600 })
  }

  /** Over a migrated database; by default over a new one. */
  static async create(url?: string): Promise<EngineCluster> {
    return new EngineCluster(url ?? (await freshDatabase()))
  }

  async start(env: Record<string, string> = {}): Promise<EngineProcess> {
    if (this.#processes.length === 0) await sealGroups(this.db)
    const path = join(this.#dir, `member-${this.#processes.length}`)
    const port = await freePort()
    const member = new EngineProcess(path, port, {
      DATABASE_URL: this.url,
      REDIS_URL: '',
      CHAIN_ID: `${CHAIN_ID}`,
      ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
      ENGINE_LISTEN: path,
      ENGINE_KEYS_FILE: this.#keysFile,
      INTERNAL_PORT: `${port}`,
      LOG_LEVEL: 'info',
      ...env,
    })
    this.#processes.push(member)
    await member.ready()
    return member
  }

  /** How another process finds the members. */
  get environment(): Record<'DATABASE_URL' | 'ENGINE_URL' | 'ENGINE_KEYS_FILE', string> {
    return {
      DATABASE_URL: this.url,
      ENGINE_URL: this.#processes.map(({ path }) => path).join(','),
      ENGINE_KEYS_FILE: this.#keysFile,
    }
  }

  /** A client that knows all members. */
  async connect(role: Role): Promise<Engine> {
    const members = this.#processes.map(({ path }) => path)
    const access = { members, keys: keysOf('keys', this.#keysFile, ROLES) }
    const client = connectEngine(await identityOf(this.db, CHAIN_ID), access, role, SILENT)
    this.#clients.push(client)
    await client.ready()
    return client.engine
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) await client.close()
    for (const member of this.#processes) await member.kill('SIGKILL')
    await this.db.destroy()
    rmSync(this.#dir, { recursive: true })
  }
}

export class EngineProcess {
  readonly path: string
  readonly #child: ChildProcess
  readonly #url: string
  #output = ''

  constructor(path: string, port: number, env: Record<string, string>) {
    this.path = path
    this.#url = `http://127.0.0.1:${port}`
    this.#child = spawn(process.execPath, ['keeper/engine/main.ts'], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (data) => {
        this.#output += data
      })
  }

  get output(): string {
    return this.#output
  }

  async ready(): Promise<void> {
    const read = async (): Promise<boolean> => {
      if (this.#child.exitCode !== null) throw new Error(`the engine has ended: ${this.#output}`)
      return (await fetch(`${this.#url}/health/ready`).catch(() => null))?.ok === true
    }
    await waitFor(read, (isReady) => isReady)
  }

  metrics = async (): Promise<string> => (await fetch(`${this.#url}/metrics`)).text()

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Code and signal of its end. */
  async ended(): Promise<[number | null, NodeJS.Signals | null]> {
    const { exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null) return [exitCode, signalCode]
    return (await once(this.#child, 'exit')) as [number | null, NodeJS.Signals | null]
  }

  /** Ends it, and returns code and signal of its end. */
  async kill(signal: NodeJS.Signals): Promise<[number | null, NodeJS.Signals | null]> {
    const ended = this.ended()
    this.#child.kill(signal)
    return ended
  }
}
