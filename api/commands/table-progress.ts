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
const CATCH_UP_POLL_MS = 10

interface Progress {
  readonly head: number
  readonly written: number
}

/** Head of a journal without groups. A parameter, because only statements with one are prepared (`db/prepared.ts`). */
const NONE = 0

/** Calls of so many milliseconds ask together. */
const JOIN_MS = 2

export function createTableProgress(db: Db, joinMs = JOIN_MS): TableProgress {
  let joining: Promise<boolean> | null = null

  async function read(): Promise<Progress> {
    const { rows } = await sql<Progress>`
      select coalesce((select max(number) from engine_groups), ${NONE}::bigint) as head, written from engine_tables
    `.execute(db)
    return rows[0] as Progress
  }

  async function follow(): Promise<boolean> {
    const { head, written } = await read()
    const until = performance.now() + CATCH_UP_MS
    for (let reached = written; reached < head; { written: reached } = await read()) {
      if (performance.now() > until) return false
      await sleep(CATCH_UP_POLL_MS)
    }
    return true
  }

  async function join(): Promise<boolean> {
    await sleep(joinMs)
    joining = null
    return follow()
  }

  return {
    caughtUp() {
      joining ??= join()
      return joining
    },
  }
}

/** Before a read whose result is an answer: without what the tables lack, it is not known. */
export async function requireCaughtUp(tables: TableProgress): Promise<void> {
  if (!(await tables.caughtUp())) throw new ApiError('OUTCOME_UNKNOWN', {}, '1')
}
