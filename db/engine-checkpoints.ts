/** Checkpoints of the engine's state on Postgres. A checkpoint is written chunk by chunk and counts once it is complete. */
import type pg from 'pg'

export interface StoredCheckpoint {
  readonly id: number
  readonly number: number
  readonly stateVersion: number
  readonly rows: number
  readonly at: number
  readonly digest: string
}

export interface StoredChunk {
  readonly table: number
  readonly bytes: Uint8Array
}

/** Complete checkpoints to keep: the older checkpoint serves if the newest cannot be loaded. */
const KEPT = 2

const BEGIN = `
  insert into engine_checkpoints (number, state_version, rows, at, digest) values ($1, $2, $3, $4, $5)
  returning checkpoint_id as id
`
const ADD =
  'insert into engine_checkpoint_chunks (checkpoint_id, place, table_no, bytes) values ($1, $2, $3, $4)'
const COMPLETE = `
  update engine_checkpoints set is_complete = true
  where checkpoint_id = $1 and (select count(*) from engine_checkpoint_chunks where checkpoint_id = $1) = $2
  returning checkpoint_id
`
/** Incomplete checkpoints are of a writer that has ended, or are obsolete. */
const PRUNE = `
  delete from engine_checkpoints where checkpoint_id < $1 and checkpoint_id not in (
    select checkpoint_id from engine_checkpoints where is_complete order by number desc, checkpoint_id desc limit ${KEPT}
  )
`
const NEWEST = `
  select checkpoint_id as id, number, state_version as "stateVersion", rows, at, digest from engine_checkpoints
  where is_complete and state_version = $1 order by number desc, checkpoint_id desc limit ${KEPT}
`
const CHUNK =
  'select table_no as "table", bytes from engine_checkpoint_chunks where checkpoint_id = $1 and place = $2'

export async function beginCheckpoint(
  pool: pg.Pool,
  checkpoint: Omit<StoredCheckpoint, 'id'>,
): Promise<number> {
  const { number, stateVersion, rows, at, digest } = checkpoint
  const result = await pool.query<{ id: number }>(BEGIN, [number, stateVersion, rows, at, digest])
  return (result.rows[0] as { id: number }).id
}

export async function addChunk(
  pool: pg.Pool,
  id: number,
  place: number,
  { table, bytes }: StoredChunk,
): Promise<void> {
  await pool.query(ADD, [id, place, table, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)])
}

/** Lets the checkpoint count and deletes those that it replaces. False if a chunk is missing: another writer has deleted it. */
export async function completeCheckpoint(pool: pg.Pool, id: number, chunks: number): Promise<boolean> {
  const { rowCount } = await pool.query(COMPLETE, [id, chunks])
  if (rowCount !== 1) return false
  await pool.query(PRUNE, [id])
  return true
}

/** Complete checkpoints of the version, newest first. */
export const newestCheckpoints = async (pool: pg.Pool, stateVersion: number): Promise<StoredCheckpoint[]> =>
  (await pool.query<StoredCheckpoint>(NEWEST, [stateVersion])).rows

/** The chunks in their order, one query each: a state is far larger than what one answer should hold. */
export async function* checkpointChunks(pool: pg.Pool, id: number): AsyncGenerator<StoredChunk> {
  for (let place = 0; ; place++) {
    const { rows } = await pool.query<StoredChunk>(CHUNK, [id, place])
    if (rows[0] === undefined) return
    yield rows[0]
  }
}
