/** Serves the engine of a test to processes of the exchange, over the connection that they have with an engine process. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Db } from '../../db/client.ts'
import type { Millis } from '../../domain/units.ts'
import type { ExchangeAnswer } from '../../keeper/engine/commands.ts'
import { ConnectionDeadlines } from '../../keeper/engine/connection-deadlines.ts'
import { createEnginePort } from '../../keeper/engine/engine-port.ts'
import { Facts } from '../../keeper/engine/facts.ts'
import { identityOf } from '../../keeper/engine/link/connect.ts'
import type { Engine } from '../../keeper/engine/link/engine.ts'
import { type Links, listen } from '../../keeper/engine/link/listen.ts'
import { ROLES } from '../../keeper/engine/link/messages.ts'
import { RecentReplies } from '../../keeper/engine/link/recent-replies.ts'
import type { Reply } from '../../keeper/engine/owner.ts'
import { AdoptingEngine } from './adopting-engine.ts'

const CHAIN_ID = 6343
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** The engine has its facts from the test: what clients inform of is dropped. */
const portOf = (engine: Engine) =>
  createEnginePort({
    submit: ({ command, deadline }) =>
      engine.submit(command as never, deadline - performance.now()) as Promise<Reply<ExchangeAnswer>>,
    facts: new Facts({ oracleMaxAgeMs: 0, chainMaxAgeMs: 0 }),
    deadlines: new ConnectionDeadlines(),
    now: () => Date.now() as Millis,
    monotonic: () => performance.now(),
  })

export class ServedEngine {
  /** How a process finds the engine, in any role. */
  readonly env: { readonly ENGINE_URL: string; readonly ENGINE_KEYS_FILE: string }
  readonly #directory: string
  readonly #links: Links

  private constructor(directory: string, env: ServedEngine['env'], links: Links) {
    this.#directory = directory
    this.env = env
    this.#links = links
  }

  static async start(db: Db, engine: Engine = new AdoptingEngine(db)): Promise<ServedEngine> {
    const directory = mkdtempSync(join(tmpdir(), 'engine-'))
    const env = { ENGINE_URL: join(directory, 'socket'), ENGINE_KEYS_FILE: join(directory, 'keys.json') }
    const keys = new Map(ROLES.map((role) => [role, randomBytes(32)]))
    const texts = Object.fromEntries([...keys].map(([role, key]) => [role, key.toString('hex')]))
    writeFileSync(env.ENGINE_KEYS_FILE, JSON.stringify(texts), { mode: 0o600 })
    const links = await listen(
      { listen: { path: env.ENGINE_URL }, tls: null },
      {
        ...portOf(engine),
        identity: await identityOf(db, CHAIN_ID),
        keys,
        recent: new RecentReplies(1_000),
        member: randomBytes(16).toString('hex'),
        monotonic: () => performance.now(),
        token: () => 1,
        logger: SILENT,
      },
    )
    return new ServedEngine(directory, env, links)
  }

  async stop(): Promise<void> {
    await this.#links.close()
    rmSync(this.#directory, { recursive: true })
  }
}
