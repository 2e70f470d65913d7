/** The file of a cluster's folder that outlives a start: layout and passwords. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readJson, writePrivate } from '../data-dir.ts'
import { StackError } from '../options.ts'
import type { Secrets } from './configuration.ts'
import type { Layout } from './layout.ts'

export interface ClusterState {
  readonly dir: string
  readonly layout: Layout
  readonly secrets: Secrets
}

interface StoredState extends Omit<ClusterState, 'dir'> {
  /** Absent in a folder whose servers expect connections without TLS. */
  readonly tls?: boolean
}

const fileIn = (dir: string): string => join(dir, 'cluster.json')

const SECRETS = ['database', 'replication', 'rewind', 'patroni', 'redis', 'signers'] as const

const isState = ({ layout, secrets }: StoredState): boolean =>
  typeof layout?.id === 'number' && SECRETS.every((name) => typeof secrets?.[name] === 'string')

const newSecrets = (): Secrets =>
  Object.fromEntries(SECRETS.map((name) => [name, randomBytes(24).toString('hex')])) as unknown as Secrets

/** Null before the first start. */
export function storedState(dir: string): ClusterState | null {
  const stored = readJson<StoredState>(fileIn(dir), isState)
  if (stored === null) return null
  const { layout, secrets, tls } = stored
  if (tls === true) return { dir, layout, secrets }
  throw new StackError(
    `the state in ${dir} is one of a cluster without TLS, and its servers accept no other connections: delete it with --fresh, or choose ` +
      'another --dir',
  )
}

/** Members of etcd, Postgres and Redis know each other by their addresses, so a later start has those of the first one. */
export function stateOf(dir: string, layout: Layout): ClusterState {
  const stored = storedState(dir)
  if (stored !== null && stored.layout.network !== layout.network)
    throw new StackError(
      `the state in ${dir} is one of a cluster on ${stored.layout.network}, not on ${layout.network}: delete it with --fresh, or choose ` +
        'another --dir',
    )
  const state = stored ?? { dir, layout, secrets: newSecrets() }
  const used = { ...state, layout: { ...state.layout, port: layout.port } }
  writePrivate(fileIn(dir), { layout: used.layout, secrets: used.secrets, tls: true })
  return used
}
