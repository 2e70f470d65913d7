/**
 * Decides which process projects: the holder of `SOLE_LOCK`. A standby process takes over if rows wait and no place has
 * moved between two polls.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { Logger } from '../../service/logger.ts'
import { SOLE_LOCK } from './next-shards.ts'

const POLL_MS = 500
/** A session that has waited for its client this long within a transaction belongs to a process that does not run. */
const FROZEN_MS = 1_500

interface Ports {
  readonly db: Db
  readonly logger: Logger
}

export class Standby {
  readonly #ports: Ports
  readonly #pollMs: number
  #isStandby = false
  /** The sum of all places at the last look with waiting rows; null if no rows waited. */
  #placesBefore: number | null = null

  constructor(ports: Ports, pollMs = POLL_MS) {
    this.#ports = ports
    this.#pollMs = pollMs
  }

  /** The lock was held: the other process projects. */
  yield(): void {
    if (!this.#isStandby) this.#ports.logger.info({}, 'another process projects; this one stands by')
    this.#isStandby = true
    this.#placesBefore = null
  }

  /** False while another process projects, after a pause. */
  async mayProject(): Promise<boolean> {
    if (!this.#isStandby) return true
    await sleep(this.#pollMs)
    const { db, logger } = this.#ports
    const places = await placesIfWaiting(db)
    // The other process has ended, or is frozen within a transaction and still holds the lock.
    const isStalled = places !== null && places === this.#placesBefore
    this.#placesBefore = places
    if (!isStalled) return false
    const ended = await endFrozenSession(db)
    this.#isStandby = false
    logger.info({ ended_sessions: ended }, 'rows wait and no other process projects them; this one does')
    return true
  }
}

/** The sum of the foremost places of all shards if rows wait behind one; else null. Fills do not move it. */
async function placesIfWaiting(db: Db): Promise<number | null> {
  const { rows } = await sql<{ places: number; waits: boolean }>`
    select coalesce(sum(p.seq), 0)::bigint as places, coalesce(bool_or(s.head > p.seq), false) as waits
    from shards s cross join lateral (select max(seq) as seq from read.places where shard = s.shard) p
  `.execute(db)
  const [{ places, waits }] = rows as [(typeof rows)[number]]
  return waits ? places : null
}

/** Ends the session that holds the lock if it waits for a process that does not run. Returns the number of sessions. */
async function endFrozenSession(db: Db): Promise<number> {
  const { rows } = await sql`
    select pg_terminate_backend(a.pid)
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 2
      and l.database = (select oid from pg_database where datname = current_database())
      and l.classid = ${SOLE_LOCK.first}::integer::oid and l.objid = ${SOLE_LOCK.second}::integer::oid
      and a.wait_event = 'ClientRead' and a.state_change < clock_timestamp() - make_interval(secs => ${FROZEN_MS / 1_000}::double precision)
  `.execute(db)
  return rows.length
}
