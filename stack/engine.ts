/** The engine of the stack: the keys of its clients, and the markets that it lists. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Db } from '../db/client.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import type { CalendarName } from '../domain/market/trading-calendar.ts'
import { type EngineAccess, keysOf } from '../keeper/engine/link/access.ts'
import { connectEngine, identityOf } from '../keeper/engine/link/connect.ts'
import { ask } from '../keeper/engine/link/engine.ts'
import { ROLES, type Role } from '../keeper/engine/link/messages.ts'
import { type DataDir, makeFolder, writePrivate } from './data-dir.ts'

/** Roles of each process. */
const ROLES_OF = {
  engine: ROLES,
  api: ['api'],
  indexer: ['ingest'],
  keeper: ['worker', 'publisher'],
  operator: ['operator'],
} as const satisfies Readonly<Record<string, readonly Role[]>>

type KeyHolder = keyof typeof ROLES_OF

/** Where the engine listens, and the key file of each process, with the keys of its roles alone. */
export interface EngineFiles {
  /** Socket of the first member. */
  readonly socket: string
  /** Socket of the follower member; null without such a member. */
  readonly standbySocket: string | null
  readonly keys: Readonly<Record<KeyHolder, string>>
}

export type EngineKeyFiles = EngineFiles['keys']

/** New keys at each start. */
export function writeEngineKeys(folder: string): EngineKeyFiles {
  makeFolder(folder)
  const keys = new Map(ROLES.map((role) => [role, randomBytes(32).toString('hex')]))
  const files = Object.entries(ROLES_OF).map(([name, roles]) => {
    const file = join(folder, `${name}.json`)
    writePrivate(file, Object.fromEntries(roles.map((role) => [role, keys.get(role)])))
    return [name, file]
  })
  return Object.fromEntries(files)
}

export function writeEngineFiles({ engine: folder }: DataDir, hasStandby: boolean): EngineFiles {
  const keys = writeEngineKeys(folder)
  return {
    socket: join(folder, 'socket'),
    standbySocket: hasStandby ? join(folder, 'standby') : null,
    keys,
  }
}

export const membersOf = ({ socket, standbySocket }: EngineFiles): string[] =>
  [socket, standbySocket].filter((path) => path !== null)

/** Addresses of all members, and the key files of their clients. */
export interface EngineMembers {
  readonly members: readonly string[]
  readonly keys: EngineKeyFiles
  /** Absent: connections without TLS. */
  readonly tls?: EngineAccess<Role>['tls']
}

const BUDGET_MS = 30_000

/** Lists the markets that are not listed yet, and sets the calendar of those with sessions. */
export async function listMarkets(
  db: Db,
  { members, keys: files, tls = null }: EngineMembers,
  specs: readonly MarketSpec[],
  calendar: CalendarName,
): Promise<void> {
  const keys = keysOf('ENGINE_KEYS_FILE', files.operator, ['operator'])
  const access = { members, keys, tls }
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const chainId = Number(specs[0]?.chainId ?? 0)
  const link = connectEngine(await identityOf(db, chainId), access, 'operator', silent)
  const { engine } = link
  try {
    for (const spec of specs) {
      await ask<'list_market'>(engine, { kind: 'list_market', spec }, BUDGET_MS)
      const setting = { kind: 'calendar', calendar } as const
      // Set at every start, because the flag may differ from the last start.
      if (spec.fundingSession)
        await ask<'operator'>(engine, { kind: 'operator', marketId: spec.marketId, setting }, BUDGET_MS)
    }
  } finally {
    await link.close()
  }
}
