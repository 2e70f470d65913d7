/** The programs of Debian that a cluster needs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Newest first; the migrations run on all of them. */
const POSTGRES_VERSIONS = [18, 17, 16, 15] as const
const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** The Debian package of each program. */
const PACKAGES = {
  etcd: 'etcd-server',
  patroni: 'patroni',
  haproxy: 'haproxy',
  'redis-server': 'redis-server',
  'redis-sentinel': 'redis-sentinel',
  openssl: 'openssl',
} as const

export type Program = keyof typeof PACKAGES

export interface Programs {
  readonly paths: Readonly<Record<Program, string>>
  /** Folder of Postgres' programs. */
  readonly postgresDir: string
}

/** The programs, or the packages that are missing. */
export function findPrograms(exists: (path: string) => boolean = existsSync): Programs | readonly string[] {
  const found = Object.keys(PACKAGES).map(
    (name) => [name, FOLDERS.map((folder) => join(folder, name)).find(exists)] as const,
  )
  const postgresDir = POSTGRES_VERSIONS.map((version) => `/usr/lib/postgresql/${version}/bin`).find(
    (folder) => exists(join(folder, 'postgres')),
  )
  const missing: string[] = found
    .filter(([, path]) => path === undefined)
    .map(([name]) => PACKAGES[name as Program])
  if (postgresDir === undefined) missing.push('postgresql')
  if (postgresDir === undefined || missing.length > 0) return missing
  return { paths: Object.fromEntries(found) as Programs['paths'], postgresDir }
}

/** One line that names all of them. */
export const missingPackages = (missing: readonly string[]): string =>
  `a cluster needs Debian's packages ${missing.join(', ')}: install them with \`apt-get install ${missing.join(' ')}\``
