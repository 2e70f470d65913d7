/** Stores the fences that an owner of the journal leaves to its successor before it releases its lease. */
import type pg from 'pg'

export interface Handover {
  /** Keys of commands of which earlier attempts must not be executed. */
  readonly fences: readonly string[]
  /** Age of the time before which apis have received placements that must not be executed; null: there is none. */
  readonly refusedMs: number | null
}

/** A handover of an earlier owner is obsolete. */
const STORE = `
  with obsolete as (delete from engine_handovers where token < $1)
  insert into engine_handovers (token, fences, refused_ms) values ($1, $2, $3)
`
const READ = 'select fences, refused_ms as "refusedMs" from engine_handovers where token = $1'

export async function storeHandover(pool: pg.Pool, token: number, handover: Handover): Promise<void> {
  await pool.query(STORE, [token, JSON.stringify(handover.fences), handover.refusedMs])
}

/** Null if the owner with the token has left nothing: it has not ended in order. */
export const readHandover = async (pool: pg.Pool, token: number): Promise<Handover | null> =>
  (await pool.query<Handover>(READ, [token])).rows[0] ?? null
