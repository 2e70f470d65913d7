/** The commands of `npm run cb -- ops announce …`: notices to traders and maintenance windows. Each prints what it would do; `--send` does it. */
import {
  ANNOUNCEMENT_KINDS,
  type Announcement,
  listAnnouncements,
  MAX_BODY,
  MAX_TITLE,
  postAnnouncement,
  withdrawAnnouncement,
} from '../db/announcements.ts'
import type { Db } from '../db/client.ts'
import { readClock } from '../db/clock.ts'
import type { Millis } from '../domain/units.ts'
import { type Arguments, type Flags, oneOf, required, text, toggle } from '../service/command-line.ts'
import { timeOfMillis } from '../tasks/print.ts'
import { timeOf } from './command.ts'
import { type DatabaseConnection, type Env, onDatabase } from './connect.ts'
import { OpsError } from './error.ts'

const STACK = {
  stack: text(
    '<file>',
    'stack.json of a running stack; without it the database at DATABASE_URL, of its owner',
  ),
} as const
const SEND = { send: toggle('write it; without it the command only prints') } as const
/** Announcements that `list` prints. */
const LISTED = 50

interface Command<Declared extends Flags> {
  readonly help: string
  readonly flags: Declared
  readonly run: (connection: DatabaseConnection, flags: Arguments<Declared>) => Promise<void>
}

const command = <Declared extends Flags>(each: Command<Declared>): Command<Declared> => each

function textOf(flag: string, given: string, least: number, most: number): string {
  const trimmed = given.trim()
  if (trimmed.length < least || trimmed.length > most)
    throw new OpsError(`--${flag} must have ${least} to ${most} characters; received ${trimmed.length}`)
  if (/[^\P{Cc}\n]/u.test(trimmed))
    throw new OpsError(`--${flag} must have no control characters; received ${JSON.stringify(given)}`)
  return trimmed
}

interface Window {
  readonly starts_at: number
  readonly ends_at: number
}

/** Null for a notice, which has no window. */
function windowOf(
  kind: string,
  from: string | undefined,
  to: string | undefined,
  now: Millis,
): Window | null {
  if (kind === 'notice') {
    if (from === undefined && to === undefined) return null
    throw new OpsError(`--from and --to are those of --kind maintenance; received --kind ${kind}`)
  }
  if (from === undefined || to === undefined)
    throw new OpsError(
      `--kind maintenance needs --from and --to; received ${from ?? 'no --from'} and ${to ?? 'no --to'}`,
    )
  const window = { starts_at: timeOf('from', from), ends_at: timeOf('to', to) }
  if (window.ends_at <= window.starts_at || window.ends_at <= now)
    throw new OpsError(
      `--to must be after --from and after ${timeOfMillis(now)}; received ${to}, with --from ${from}`,
    )
  return window
}

async function marketOf(db: Db, symbol: string | undefined): Promise<number | null> {
  if (symbol === undefined) return null
  const markets = await db
    .selectFrom('markets')
    .select(['market_id', 'symbol'])
    .orderBy('market_id')
    .execute()
  const market = markets.find((each) => each.symbol === symbol)
  if (market !== undefined) return market.market_id
  const symbols = markets.map((each) => each.symbol).join(', ')
  throw new OpsError(`--market must be one of ${symbols}; received ${symbol}`)
}

const windowText = ({ starts_at, ends_at }: Pick<Announcement, 'starts_at' | 'ends_at'>): string =>
  starts_at === null || ends_at === null ? '' : ` from ${timeOfMillis(starts_at)} to ${timeOfMillis(ends_at)}`

async function change(description: string, send: boolean, write: () => Promise<unknown>): Promise<void> {
  console.log(description)
  if (!send) return console.log('Nothing was written: --send writes it.')
  const written = await write()
  console.log(`Written${written === undefined ? '' : ` as announcement ${written}`}.`)
}

const list = command({
  help: `the newest ${LISTED} announcements`,
  flags: STACK,
  async run({ db }) {
    for (const each of await listAnnouncements(db, { beforeId: null, limit: LISTED })) {
      const withdrawn = each.withdrawn_at === null ? '' : `, withdrawn ${timeOfMillis(each.withdrawn_at)}`
      const market = each.market_id === null ? '' : ` of market ${each.market_id}`
      console.log(
        `${each.announcement_id}  ${timeOfMillis(each.created_at)}  ${each.kind}${market}${windowText(each)}: ${each.title}${withdrawn}`,
      )
    }
  },
})

const post = command({
  help: 'posts an announcement to /v0/announcements and the topic system; a maintenance window also to /v0/status',
  flags: {
    ...STACK,
    kind: oneOf(ANNOUNCEMENT_KINDS, 'what is announced (default notice)'),
    title: required(text('<text>', `title, 1 to ${MAX_TITLE} characters`)),
    body: text('<text>', `further text, up to ${MAX_BODY} characters`),
    market: text('<symbol>', 'the market concerned (default: the whole exchange)'),
    from: text('<time>', 'start of the maintenance, such as 2026-11-27T06:00:00Z'),
    to: text('<time>', 'planned end of the maintenance'),
    ...SEND,
  },
  async run({ db }, { kind = 'notice', title, body = '', market, from, to, send }) {
    const now = await readClock(db)
    const window = windowOf(kind, from, to, now)
    const announcement = {
      kind,
      title: textOf('title', title, 1, MAX_TITLE),
      body: textOf('body', body, 0, MAX_BODY),
      market_id: await marketOf(db, market),
      starts_at: window?.starts_at ?? null,
      ends_at: window?.ends_at ?? null,
      created_at: now,
    }
    await change(
      `${kind}${market === undefined ? '' : ` of ${market}`}${windowText(announcement)}: ${announcement.title}`,
      send,
      () => postAnnouncement(db, announcement),
    )
  },
})

const withdraw = command({
  help: 'withdraws an announcement: a maintenance window is no longer shown by /v0/status',
  flags: { ...STACK, id: required(text('<id>', 'announcement_id')), ...SEND },
  async run({ db }, { id, send }) {
    const found = /^\d{1,15}$/.test(id)
      ? (await listAnnouncements(db, { beforeId: Number(id) + 1, limit: 1 }))[0]
      : undefined
    if (found === undefined || String(found.announcement_id) !== id || found.withdrawn_at !== null)
      throw new OpsError(
        `--id must be that of an announcement that is not withdrawn (ops announce list); received ${id}`,
      )
    await change(`withdraws ${found.kind} ${id}: ${found.title}`, send, async () => {
      await withdrawAnnouncement(db, found.announcement_id, await readClock(db))
    })
  },
})

export const ANNOUNCE_COMMANDS = { list, post, withdraw } as const

/** Runs one command. `flags` are its own. */
export async function runAnnounceCommand(
  name: keyof typeof ANNOUNCE_COMMANDS,
  flags: Arguments<typeof STACK>,
  env: Env,
): Promise<void> {
  const run = ANNOUNCE_COMMANDS[name].run as (on: DatabaseConnection, flags: unknown) => Promise<void>
  await onDatabase(flags.stack ?? null, env, (connection) => run(connection, flags))
}
