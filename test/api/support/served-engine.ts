/** Serves the engine of a test to api processes, over the connection that they have with an engine process. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Db } from '../../../db/client.ts'
import { engineIdentity } from '../../../db/engine-identity.ts'
import { accountOf, classOf, type ExchangeCommand, mayRoleSend } from '../../../keeper/engine/commands.ts'
import { decode, encode } from '../../../keeper/engine/link/codec.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import { type Links, listen } from '../../../keeper/engine/link/listen.ts'
import { PROTOCOL } from '../../../keeper/engine/link/messages.ts'
import { RecentReplies } from '../../../keeper/engine/link/recent-replies.ts'
import type { CommandPort } from '../../../keeper/engine/link/server.ts'
import { AdoptingEngine } from './adopting-engine.ts'

const CHAIN_ID = 6343
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

const portOf = (engine: Engine): CommandPort<ExchangeCommand> => ({
  parse: (value) => decode(value) as ExchangeCommand,
  allows: mayRoleSend,
  classify: (command) => ({ class: classOf(command), account: accountOf(command) }),
  submit: ({ command, deadline }) =>
    engine
      .submit(command as never, deadline - performance.now())
      .then((reply) => ('none' in reply ? (reply as never) : { answer: encode(reply.answer) })),
})

export class ServedEngine {
  /** How an api process finds the engine. */
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
    const key = randomBytes(32)
    writeFileSync(env.ENGINE_KEYS_FILE, JSON.stringify({ api: key.toString('hex') }), { mode: 0o600 })
    const links = await listen(
      { path: env.ENGINE_URL },
      {
        ...portOf(engine),
        identity: { protocol: PROTOCOL, chainId: CHAIN_ID, ...(await engineIdentity(db)) },
        keys: new Map([['api', key]]),
        recent: new RecentReplies(1_000),
        member: randomBytes(16).toString('hex'),
        monotonic: () => performance.now(),
        isOwner: () => true,
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
