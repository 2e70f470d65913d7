/**
 * Writes the state of a follower as a checkpoint, and builds a state from the newest one. A start reads a checkpoint and the groups after it,
 * never the read model.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type pg from 'pg'
import {
  addChunk,
  beginCheckpoint,
  checkpointChunks,
  completeCheckpoint,
  newestCheckpoints,
  type StoredCheckpoint,
} from '../../db/engine-checkpoints.ts'
import { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import { loadChunk, serialize } from '../../domain/exchange/checkpoint.ts'
import { createState } from '../../domain/exchange/state.ts'
import { STATE_VERSION } from '../../domain/exchange/state-version.ts'
import type { Millis } from '../../domain/units.ts'
import type { Logger } from '../../service/logger.ts'

/** A state and the last group that it contains; 0: none. */
export interface RecoveredState {
  readonly applied: AppliedRows
  readonly number: number
}

/**
 * Stores the state after group `number`; true if complete. The caller applies nothing meanwhile. `isWanted` is read per
 * chunk, so that a follower can stop to become the owner.
 */
export async function writeCheckpoint(
  pool: pg.Pool,
  { applied, number }: RecoveredState,
  isWanted: () => boolean,
): Promise<boolean> {
  const id = await beginCheckpoint(pool, {
    number,
    stateVersion: STATE_VERSION,
    rows: applied.position(),
    at: applied.time(),
    digest: applied.digest(),
  })
  let chunks = 0
  for (const { table, bytes } of serialize(applied.state)) {
    if (!isWanted()) return false
    await addChunk(pool, id, chunks++, { table, bytes })
  }
  return completeCheckpoint(pool, id, chunks)
}

/** The state of the newest checkpoint that can be loaded and has its digest; without one, the state before the first row. */
export async function recoverState(pool: pg.Pool, logger: Logger): Promise<RecoveredState> {
  for (const checkpoint of await newestCheckpoints(pool, STATE_VERSION)) {
    const recovered = await loadCheckpoint(pool, checkpoint).catch((err: unknown) => {
      logger.error({ err, number: checkpoint.number }, 'checkpoint cannot be loaded; the one before is used')
      return null
    })
    if (recovered !== null) return recovered
  }
  return { applied: new AppliedRows(createState()), number: 0 }
}

async function loadCheckpoint(
  pool: pg.Pool,
  { id, number, rows, at, digest }: StoredCheckpoint,
): Promise<RecoveredState> {
  const state = createState()
  for await (const { table, bytes } of checkpointChunks(pool, id)) {
    loadChunk(state, { version: STATE_VERSION, table, bytes })
    await nextTurn()
  }
  const applied = new AppliedRows(state, rows, at as Millis)
  if (applied.digest() !== digest)
    throw new Error(`the state has the digest ${applied.digest()}, its checkpoint states ${digest}`)
  return { applied, number }
}
