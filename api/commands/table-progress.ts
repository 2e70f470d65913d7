/** Whether the tables of readers contain what the engine has stored: they follow its journal. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { ApiError } from '../errors.ts'

export interface TableProgress {
  /**
   * Resolves once the tables contain every group that was stored before the call, and with false if they do not within a while: what they lack may then
   * be in the journal.
   */
  caughtUp(): Promise<boolean>
}

const CATCH_UP_MS = 2_000
/** About half of the pause between two writes of the tables under load. */
const CATCH_UP_POLL_MS = 20

interface Progress {
  readonly head: number
  readonly written: number
}

/** Head of a journal without groups. A parameter, because only statements with one are prepared (`db/prepared.ts`). */
const NONE = 0

/** Calls within this time share their first read. */
const JOIN_MS = 2

export function createTableProgress(db: Db, joinMs = JOIN_MS): TableProgress {
  let next: Promise<Progress> | null = null

  async function read(): Promise<Progress> {
    const { rows } = await sql<Progress>`
      select coalesce((select max(number) from engine_groups), ${NONE}::bigint) as head, written from engine_tables
    `.execute(db)
    return rows[0] as Progress
  }

  /** The next read, which begins after the call. All calls share it. */
  function progressIn(pauseMs: number): Promise<Progress> {
    next ??= sleep(pauseMs).then(() => {
      next = null
      return read()
    })
    return next
  }

  return {
    async caughtUp() {
      const { head, written } = await progressIn(joinMs)
      const until = performance.now() + CATCH_UP_MS
      for (let reached = written; reached < head; { written: reached } = await progressIn(CATCH_UP_POLL_MS))
        if (performance.now() > until) return false
      return true
    },
  }
}

/** Before a read whose result is an answer: without what the tables lack, it is not known. */
export async function requireCaughtUp(tables: TableProgress): Promise<void> {
  if (!(await tables.caughtUp())) throw new ApiError('OUTCOME_UNKNOWN', {}, '1')
}
