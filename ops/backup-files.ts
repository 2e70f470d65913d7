/** Base backups and archived WAL in a folder: `base/<label>` with `base/<label>.json`, and `wal`. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { appendFile, cp, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { RESTORED_TO } from '../db/engine-identity.ts'
import { passwordIn } from '../service/database-address.ts'
import type { Env } from './connect.ts'
import { OpsError } from './error.ts'

const run = promisify(execFile)

export interface BaseBackup {
  readonly label: string
  readonly started_at: number
  /** Earliest time to which the backup can be restored. */
  readonly completed_at: number
  readonly bytes: number
}

const baseOf = (dir: string): string => join(resolve(dir), 'base')
const walOf = (dir: string): string => join(resolve(dir), 'wal')

/** A program of the server's Debian package, or of the folder that POSTGRES_BIN names. */
const program = (name: string, { POSTGRES_BIN: folder = '/usr/lib/postgresql/15/bin' }: Env): string =>
  existsSync(join(folder, name)) ? join(folder, name) : name

/** By the environment, because arguments of a process are readable by every user of its host. Variables of libpq that are set already win. */
function connectionOf(url: string, env: Env): Record<string, string> {
  const { hostname, port, username, password, searchParams } = new URL(url)
  const passwordFile = searchParams.get('password_file')
  return {
    PGHOST: searchParams.get('host') ?? hostname,
    PGPORT: port === '' ? '5432' : port,
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: passwordFile === null ? decodeURIComponent(password) : passwordIn(passwordFile),
    ...tlsVariables(searchParams),
    ...(Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >),
  }
}

/** Debian's bundle: libpq has no word for it before version 16. */
const SYSTEM_AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'

/** The connection of the pools, in the variables of libpq. */
function tlsVariables(parameters: URLSearchParams): Record<string, string> {
  const [mode, ca, certificate, key] = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'].map((each) =>
    parameters.get(each),
  )
  // libpq calls `require` what verifies nothing, while the pools verify the server.
  const isVerified = mode !== 'disable' && mode !== 'no-verify' && (mode || ca || certificate)
  return {
    ...(mode === 'disable' && { PGSSLMODE: 'disable' }),
    ...(mode === 'no-verify' && { PGSSLMODE: 'require' }),
    ...(isVerified && { PGSSLMODE: 'verify-full', PGSSLROOTCERT: ca ?? SYSTEM_AUTHORITIES }),
    ...(certificate && key && { PGSSLCERT: certificate, PGSSLKEY: key }),
  }
}

async function runProgram(name: string, args: readonly string[], env: Env): Promise<string> {
  try {
    const { stdout } = await run(program(name, env), [...args], { env: { PATH: process.env.PATH, ...env } })
    return stdout
  } catch (error) {
    const { stderr, message } = error as Error & { readonly stderr?: string }
    throw new OpsError(`${name} failed: ${(stderr || message).trim()}`)
  }
}

/** The newest first. */
export function backupsIn(dir: string): readonly BaseBackup[] {
  const base = baseOf(dir)
  if (!existsSync(base)) return []
  return readdirSync(base)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(base, name), 'utf8')) as BaseBackup)
    .sort((a, b) => b.completed_at - a.completed_at)
}

/** Sum over the files of the manifest. */
function sizeOf(dir: string): number {
  const { Files } = JSON.parse(readFileSync(join(dir, 'backup_manifest'), 'utf8')) as {
    readonly Files: readonly { readonly Size: number }[]
  }
  return Files.reduce((sum, { Size }) => sum + Size, 0)
}

/** Takes a base backup and verifies its checksums. It counts once its `.json` is written. `now`: of the database. */
export async function takeBackup(dir: string, url: string, env: Env, now: () => Promise<number>) {
  await mkdir(walOf(dir), { recursive: true })
  const started_at = await now()
  const label = new Date(started_at).toISOString().replace(/[:.]/g, '-')
  const target = join(baseOf(dir), label)
  await mkdir(baseOf(dir), { recursive: true, mode: 0o700 })
  const args = ['-D', target, '-X', 'stream', '--checkpoint=fast', '--no-password', '--label', label]
  await runProgram('pg_basebackup', args, connectionOf(url, env))
  await runProgram('pg_verifybackup', [target], env)
  const backup = { label, started_at, completed_at: await now(), bytes: sizeOf(target) }
  await writeFile(`${target}.json.part`, JSON.stringify(backup))
  await rename(`${target}.json.part`, `${target}.json`)
  return backup
}

/** Deletes all but the newest backups, and the WAL that the oldest kept one does not need. Returns the deleted labels. */
export async function prune(dir: string, keep: number, env: Env): Promise<readonly string[]> {
  const backups = backupsIn(dir)
  const oldest = backups.slice(0, keep).at(-1)
  if (oldest === undefined) return []
  const old = backups.slice(keep)
  for (const { label } of old) {
    await rm(join(baseOf(dir), `${label}.json`))
    await rm(join(baseOf(dir), label), { recursive: true })
  }
  const text = readFileSync(join(baseOf(dir), oldest.label, 'backup_label'), 'utf8')
  const first = /START WAL LOCATION: .*\(file ([0-9A-F]{24})\)/.exec(text)?.[1]
  if (first === undefined) throw new OpsError(`${oldest.label} has no start of its WAL in backup_label`)
  await runProgram('pg_archivecleanup', [walOf(dir), first], env)
  return old.map(({ label }) => label)
}

/** The newest backup that was complete at the time. */
export function backupBefore(dir: string, to: number): BaseBackup {
  const backups = backupsIn(dir)
  const found = backups.find(({ completed_at }) => completed_at <= to)
  if (found !== undefined) return found
  const oldest = backups.at(-1)
  throw new OpsError(
    oldest === undefined
      ? `--dir has no base backup; received ${dir}`
      : `--to must be at or after ${new Date(oldest.completed_at).toISOString()}, when the oldest backup was complete; received ${new Date(to).toISOString()}`,
  )
}

/** Fills an empty data directory, from which a server recovers to the time and becomes a primary. */
export async function prepareData(dir: string, backup: BaseBackup, data: string, to: number): Promise<void> {
  const target = resolve(data)
  const wal = walOf(dir)
  if (existsSync(target) && (await readdir(target)).length > 0)
    throw new OpsError(`--data must be an empty or a missing folder; received ${data}`)
  // The path stands in a setting and in a command of the shell, in which Postgres replaces what follows a percent sign.
  if (/['"$`\\%\n]/.test(wal))
    throw new OpsError(`--dir must have no quotes, $, %, backslash or line break; received ${dir}`)
  await cp(join(baseOf(dir), backup.label), target, { recursive: true, preserveTimestamps: true })
  await run('chmod', ['0700', target])
  const time = new Date(to).toISOString().replace('T', ' ').replace('Z', '+00')
  const settings = [
    `restore_command = 'cp "${wal}/%f" "%p"'`,
    `recovery_target_time = '${time}'`,
    // Commits at exactly the time are part of it.
    'recovery_target_inclusive = on',
    "recovery_target_action = 'promote'",
    "recovery_target_timeline = 'latest'",
    // The engine refuses to start until `ops backup finish` has recorded it.
    `${RESTORED_TO} = '${new Date(to).toISOString()}'`,
  ]
  await appendFile(join(target, 'postgresql.auto.conf'), `${settings.join('\n')}\n`)
  await writeFile(join(target, 'recovery.signal'), '')
}
