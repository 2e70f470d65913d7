/** The commands of `npm run cb -- ops relayer …`: the keys of the relayer lanes, and the choice among them. `--send` writes. */
import { sql } from 'kysely'
import type { Db } from '../db/client.ts'
import { readClock } from '../db/clock.ts'
import { chooseRelayer, chosenKey, LANE_NAME, LANE_NAMES } from '../db/relayers.ts'
import type { Address, Millis } from '../domain/units.ts'
import { type Arguments, type Flags, required, text, toggle } from '../service/command-line.ts'
import { timeOfMillis } from '../tasks/print.ts'
import { type Env, onDatabase } from './connect.ts'
import { OpsError } from './error.ts'

const STACK = {
  stack: text(
    '<file>',
    'stack.json of a running stack; without it the database at DATABASE_URL, of its owner',
  ),
} as const
const SEND = { send: toggle('write it; without it the command only prints') } as const

interface Command<Declared extends Flags> {
  readonly help: string
  readonly flags: Declared
  readonly run: (db: Db, flags: Arguments<Declared>) => Promise<void>
}

const command = <Declared extends Flags>(each: Command<Declared>): Command<Declared> => each

// ---------------------------------------------------------------------- flags

function laneOf(given: string): string {
  if (LANE_NAME.test(given)) return given
  throw new OpsError(`--lane must be ${LANE_NAMES}; received ${given}`)
}

function addressOf(given: string): Address {
  if (/^0x[0-9a-fA-F]{40}$/.test(given)) return given.toLowerCase() as Address
  throw new OpsError(`--to must be an address: 0x and 40 hexadecimal digits; received ${given}`)
}

// ---------------------------------------------------------------------- what is stored

interface KeyRow {
  readonly lane: string
  readonly address: string
  readonly registered_at: number
  readonly is_present: boolean
  /** Transactions in no block. */
  readonly open: number
  /** Actions of a market that are sent and not recorded as mined. */
  readonly unsettled: number
}

async function loadKeys(db: Db): Promise<readonly KeyRow[]> {
  const { rows } = await sql<KeyRow>`
    select r.lane, r.address, r.registered_at,
      r.registered_at = max(r.registered_at) over (partition by r.lane) as is_present,
      (
        select count(*)::int from relayer_transactions t
        where t.relayer = r.address and t.chain_id = r.chain_id and t.status in ('SIGNED', 'BROADCAST')
      ) as open,
      (select count(*)::int from actions a where a.relayer = r.address and a.status in ('SIGNED', 'SUBMITTED')) as unsettled
    from relayers r
    order by r.lane, r.registered_at desc
  `.execute(db)
  return rows
}

const stateOf = ({ is_present, open, unsettled }: KeyRow): string => {
  if (is_present) return 'present'
  return open + unsettled === 0 ? 'former, can be removed' : 'former, still followed'
}

// ---------------------------------------------------------------------- commands

const show = command({
  help: 'the keys of each relayer lane, their open transactions, and which of them can be removed',
  flags: STACK,
  async run(db) {
    const keys = await loadKeys(db)
    if (keys.length === 0) console.log('No relayer lane has run yet.')
    for (const [lane, own] of Map.groupBy(keys, (key) => key.lane)) {
      const choice = await chosenKey(db, lane)
      console.log(`${lane}: ${choice === null ? 'the first key of the keeper' : `chosen ${choice}`}`)
      for (const key of own) {
        const since = timeOfMillis(key.registered_at as Millis)
        console.log(
          `  ${key.address}  ${stateOf(key)}; last run ${since}; open transactions ${key.open}, unsettled actions ${key.unsettled}`,
        )
      }
    }
  },
})

/** A key belongs to one lane for ever: two lanes would assign its nonces twice. */
async function checkFree(db: Db, lane: string, address: Address): Promise<void> {
  const owner = await db
    .selectFrom('relayers')
    .select('lane')
    .where('address', '=', address)
    .executeTakeFirst()
  if (owner !== undefined && owner.lane !== lane)
    throw new OpsError(
      `--to must be a key of no other lane; received ${address}, which belongs to ${owner.lane}`,
    )
}

const rotate = command({
  help: 'chooses the key that a relayer lane uses; keepers that have it change to it without a restart',
  flags: {
    ...STACK,
    lane: required(text('<lane>', LANE_NAMES)),
    to: required(text('<address>', 'address of the key, which the keepers have in their relayer keys')),
    ...SEND,
  },
  async run(db, { lane: givenLane, to, send }) {
    const lane = laneOf(givenLane)
    const address = addressOf(to)
    await checkFree(db, lane, address)
    const before = (await chosenKey(db, lane)) ?? 'the first key of the keeper'
    console.log(`${lane}: chosen ${address} instead of ${before}`)
    if (!send) return console.log('Nothing was written: --send writes it.')
    await chooseRelayer(db, { lane, address, at: await readClock(db) })
    console.log(
      'Written. Keepers that have the key apply it within 5 s, once the transactions of the former key have ended.',
    )
  },
})

export const RELAYER_COMMANDS = { show, rotate } as const

/** Runs one command. `flags` are its own. */
export async function runRelayerCommand(
  name: keyof typeof RELAYER_COMMANDS,
  flags: Arguments<typeof STACK>,
  env: Env,
): Promise<void> {
  const run = RELAYER_COMMANDS[name].run as (db: Db, flags: unknown) => Promise<void>
  await onDatabase(flags.stack ?? null, env, ({ db }) => run(db, flags))
}
