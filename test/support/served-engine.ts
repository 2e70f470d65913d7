/** Serves an engine in the test's process to processes of the exchange. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Db } from '../../db/client.ts'
import type { Millis } from '../../domain/units.ts'
import { ConnectionDeadlines } from '../../keeper/engine/connection-deadlines.ts'
import { createEnginePort } from '../../keeper/engine/engine-port.ts'
import { Facts } from '../../keeper/engine/facts.ts'
import { identityOf } from '../../keeper/engine/link/connect.ts'
import { listen } from '../../keeper/engine/link/listen.ts'
import { ROLES } from '../../keeper/engine/link/messages.ts'
import { RecentReplies } from '../../keeper/engine/link/recent-replies.ts'
import type { Reply } from '../../keeper/engine/owner.ts'
import type { AdoptingEngine } from './adopting-engine.ts'

export interface ServedEngine {
  /** The variables by which a process of any role connects. */
  readonly env: { readonly ENGINE_URL: string; readonly ENGINE_KEYS_FILE: string }
  close(): Promise<void>
}

export async function serveEngine(engine: AdoptingEngine, db: Db, chainId: number): Promise<ServedEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-served-'))
  const socket = join(folder, 'socket')
  const keysFile = join(folder, 'keys.json')
  const keys = new Map(ROLES.map((role) => [role, randomBytes(32)]))
  writeFileSync(
    keysFile,
    JSON.stringify(Object.fromEntries([...keys].map(([role, key]) => [role, key.toString('hex')]))),
  )
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const port = createEnginePort({
    submit: ({ command }) => engine.submit(command as never) as Promise<Reply<unknown>>,
    facts: new Facts({ oracleMaxAgeMs: 0, chainMaxAgeMs: 0 }),
    deadlines: new ConnectionDeadlines(),
    now: () => Date.now() as Millis,
  })
  const links = await listen(
    { path: socket },
    {
      ...port,
      identity: await identityOf(db, chainId),
      keys,
      recent: new RecentReplies(1_000),
      member: randomBytes(16).toString('hex'),
      monotonic: () => performance.now(),
      isOwner: () => true,
      logger: silent,
    },
  )
  return {
    env: { ENGINE_URL: socket, ENGINE_KEYS_FILE: keysFile },
    async close() {
      await links.close()
      rmSync(folder, { recursive: true })
    },
  }
}
