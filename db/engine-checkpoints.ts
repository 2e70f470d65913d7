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
/** In base 64: the text is a third shorter than hexadecimal digits, and decoded faster. */
const CHUNKS = `
  select table_no as "table", encode(bytes, 'base64') as text
  from engine_checkpoint_chunks where checkpoint_id = $1 and place >= $2 and place < $2 + $3::int order by place
`

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

/** Chunks per query: a state is far larger than what one answer should hold. */
const AT_A_TIME = 16
/** Queries that are open at a time: the server prepares their answers while the caller works on chunks. */
const AHEAD = 3

interface ChunkText {
  readonly table: number
  readonly text: string
}

const readChunks = async (pool: pg.Pool, id: number, place: number): Promise<ChunkText[]> =>
  (await pool.query<ChunkText>(CHUNKS, [id, place, AT_A_TIME])).rows

/**
 * The chunks in their order. The bytes of each are valid until the next one is asked for: buffers of their own would set off a
 * garbage collection of the whole growing state every few chunks.
 */
export async function* checkpointChunks(pool: pg.Pool, id: number): AsyncGenerator<StoredChunk> {
  const reading: Promise<ChunkText[]>[] = []
  let decoded = Buffer.alloc(0)
  for (let place = 0; ; place += AT_A_TIME) {
    while (reading.length < AHEAD) {
      const read = readChunks(pool, id, place + reading.length * AT_A_TIME)
      // Without a listener, a failure while the caller works would end the process.
      read.catch(() => {})
      reading.push(read)
    }
    const chunks = await (reading.shift() as Promise<ChunkText[]>)
    if (chunks.length === 0) return
    for (const { table, text } of chunks) {
      if (decoded.length < text.length) decoded = Buffer.alloc(text.length)
      yield { table, bytes: decoded.subarray(0, decoded.write(text, 'base64')) }
    }
  }
}
