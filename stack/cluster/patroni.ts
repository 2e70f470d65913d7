/** Roles and states of the Postgres nodes, by Patroni's REST interface. */
import { setTimeout as sleep } from 'node:timers/promises'
import { StackError } from '../options.ts'
import { DATA_HOSTS, type DataHost, endpoint, type Layout } from './layout.ts'

export interface PostgresNode {
  readonly host: DataHost
  readonly role: 'primary' | 'synchronous standby' | 'standby'
  /** As Patroni has it, such as `running` or `streaming`. */
  readonly state: string
}

interface Member {
  readonly name: DataHost
  readonly role: string
  readonly state: string
}

const ROLES: Readonly<Record<string, PostgresNode['role']>> = {
  leader: 'primary',
  sync_standby: 'synchronous standby',
}

const PROBE_MS = 1_000

/** Empty while no Patroni answers. */
export async function postgresNodes(layout: Layout): Promise<readonly PostgresNode[]> {
  for (const host of DATA_HOSTS) {
    try {
      const url = `https://${endpoint(layout, host, 'patroni')}/cluster`
      const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) })
      const { members } = (await response.json()) as { members: readonly Member[] }
      return members.map(({ name, role, state }) => ({ host: name, role: ROLES[role] ?? 'standby', state }))
    } catch {}
  }
  return []
}

/** Null while there is none. */
export const primaryOf = (nodes: readonly PostgresNode[]): DataHost | null =>
  nodes.find(({ role, state }) => role === 'primary' && state === 'running')?.host ?? null

/** Whether commits are answered: in strict mode only with a synchronous standby. */
export const acceptsCommits = (nodes: readonly PostgresNode[]): boolean =>
  primaryOf(nodes) !== null && nodes.some(({ role }) => role === 'synchronous standby')

export async function untilNodes(
  layout: Layout,
  isReached: (nodes: readonly PostgresNode[]) => boolean,
  limitMs: number,
): Promise<readonly PostgresNode[]> {
  const deadline = Date.now() + limitMs
  for (;;) {
    const nodes = await postgresNodes(layout)
    if (isReached(nodes)) return nodes
    if (Date.now() > deadline)
      throw new StackError(
        `Postgres is not ready after ${limitMs / 1000} s (${JSON.stringify(nodes)}): see the logs of patroni`,
      )
    await sleep(200)
  }
}
