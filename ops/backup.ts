/** The commands of `npm run cb -- ops backup …`: base backups, restores to a point in time, and the check of both (`docs/operate/backup.md`). */
import { sql } from 'kysely'
import { readClock } from '../db/clock.ts'
import { beginIncarnation } from '../db/restored.ts'
import {
  type Arguments,
  type Flags,
  required,
  text,
  toggle,
  wholeNumber,
  withDefault,
} from '../service/command-line.ts'
import { timeOfMillis } from '../tasks/print.ts'
import { backupBefore, backupsIn, prepareData, prune, takeBackup } from './backup-files.ts'
import { timeOf } from './command.ts'
import { type DatabaseConnection, type Env, onDatabase } from './connect.ts'
import { OpsError } from './error.ts'

const STACK = {
  stack: text(
    '<file>',
    'stack.json of a running stack; without it the database at DATABASE_URL, of its owner',
  ),
} as const
const DIR = {
  dir: required(text('<folder>', 'folder of the backups: base backups in base/, archived WAL in wal/')),
} as const
const KEPT = 7
const MAX_AGE_HOURS = 26
const MAX_ARCHIVE_MINUTES = 5

interface Invocation {
  readonly env: Env
  /** Runs the work on the database, as its owner. */
  readonly onOwner: (work: (connection: DatabaseConnection) => Promise<void>) => Promise<void>
}

interface Command<Declared extends Flags> {
  readonly help: string
  readonly flags: Declared
  readonly run: (flags: Arguments<Declared>, invocation: Invocation) => Promise<void>
}

const command = <Declared extends Flags>(each: Command<Declared>): Command<Declared> => each

const take = command({
  help: 'takes a base backup, verifies it, records it for monitoring, and deletes old backups with their WAL',
  flags: {
    ...STACK,
    ...DIR,
    keep: withDefault(wholeNumber('base backups that stay', { least: 1, most: 10_000 }), KEPT),
  },
  run({ dir, keep }, { env, onOwner }) {
    return onOwner(async ({ db, url }) => {
      const backup = await takeBackup(dir, url, env, () => readClock(db))
      await db.insertInto('backups').values(backup).execute()
      console.log(
        `Backup ${backup.label}: ${backup.bytes} bytes in ${(backup.completed_at - backup.started_at) / 1000} s, verified.`,
      )
      for (const label of await prune(dir, keep, env)) console.log(`Deleted ${label}.`)
    })
  },
})

interface Archiver {
  readonly mode: string
  readonly archived: string | null
  readonly archived_at: number | null
  readonly failed: string | null
  readonly failed_at: number | null
}

const check = command({
  help: `fails if the newest backup is older than ${MAX_AGE_HOURS} h, or WAL has not been archived for ${MAX_ARCHIVE_MINUTES} min`,
  flags: STACK,
  run: (_, { onOwner }) =>
    onOwner(async ({ db }) => {
      const now = await readClock(db)
      const newest = await db
        .selectFrom('backups')
        .selectAll()
        .orderBy('completed_at', 'desc')
        .limit(1)
        .execute()
      const { rows } = await sql<Archiver>`
        select current_setting('archive_mode') as mode, last_archived_wal as archived, last_failed_wal as failed,
          (extract(epoch from last_archived_time) * 1000)::bigint as archived_at,
          (extract(epoch from last_failed_time) * 1000)::bigint as failed_at
        from pg_stat_archiver
      `.execute(db)
      const problems = [
        ...backupProblems(newest[0]?.completed_at ?? null, now),
        ...archiveProblems(rows[0], now),
      ]
      if (problems.length > 0) throw new OpsError(problems.join('; '))
      console.log(`Backup ${newest[0]?.label} and WAL up to ${rows[0]?.archived} are recent.`)
    }),
})

function backupProblems(completedAt: number | null, now: number): string[] {
  if (completedAt === null) return ['there is no base backup (ops backup run)']
  if (now - completedAt <= MAX_AGE_HOURS * 3_600_000) return []
  return [`the newest base backup is of ${timeOfMillis(completedAt)}: expected one in ${MAX_AGE_HOURS} h`]
}

function archiveProblems(archiver: Archiver | undefined, now: number): string[] {
  if (archiver === undefined || archiver.mode === 'off') return ['archive_mode is off: expected on']
  const { archived_at: at, failed, failed_at } = archiver
  if (failed_at !== null && (at === null || failed_at > at))
    return [`archive_command fails since ${timeOfMillis(failed_at)} for ${failed}`]
  if (at !== null && now - at <= MAX_ARCHIVE_MINUTES * 60_000) return []
  return [`WAL was last archived at ${at === null ? 'no time' : timeOfMillis(at)}: set archive_timeout to 60`]
}

const list = command({
  help: 'prints the base backups of a folder, the newest first',
  flags: { ...STACK, ...DIR },
  async run({ dir }) {
    for (const { label, completed_at, bytes } of backupsIn(dir))
      console.log(`${label}  complete ${timeOfMillis(completed_at)}  ${bytes} bytes`)
  },
})

const restore = command({
  help: 'prepares a data directory from which Postgres recovers to a point in time; start the server, then `ops backup finish`',
  flags: {
    ...STACK,
    ...DIR,
    data: required(text('<folder>', 'an empty or missing folder, the new data directory')),
    to: required(text('<time>', 'the point in time, such as 2026-11-27T06:00:00.000Z')),
  },
  async run({ dir, data, to }) {
    const at = timeOf('to', to)
    const backup = backupBefore(dir, at)
    await prepareData(dir, backup, data, at)
    console.log(`${data} has backup ${backup.label}; its server recovers to ${to}.`)
  },
})

const finish = command({
  help: 'on the recovered database, before any process starts: new epochs and incarnation, and an announcement to traders',
  flags: {
    ...STACK,
    to: required(text('<time>', 'the point in time that was restored')),
    send: toggle('write it; without it the command only prints'),
  },
  run({ to, send }, { onOwner }) {
    const restoredTo = timeOf('to', to)
    return onOwner(async ({ db }) => {
      const { rows } = await sql<{
        is_recovering: boolean
      }>`select pg_is_in_recovery() as is_recovering`.execute(db)
      if (rows[0]?.is_recovering !== false)
        throw new OpsError('the database still recovers: expected a primary; see the log of its server')
      console.log(`Begins a new incarnation of the exchange, restored to ${to}; bookmarks become stale.`)
      if (!send) return console.log('Nothing was written: --send writes it.')
      const incarnation = await beginIncarnation(db, { restoredTo, now: await readClock(db) })
      console.log(`Incarnation ${incarnation} begins. Start engine and indexer, then keeper and api.`)
    })
  },
})

export const BACKUP_COMMANDS = { run: take, check, list, restore, finish } as const

/** Runs one command. `flags` are its own. */
export async function runBackupCommand(
  name: keyof typeof BACKUP_COMMANDS,
  flags: Arguments<typeof STACK>,
  env: Env,
): Promise<void> {
  const run = BACKUP_COMMANDS[name].run as (flags: unknown, invocation: Invocation) => Promise<void>
  await run(flags, { env, onOwner: (work) => onDatabase(flags.stack ?? null, env, work) })
}
