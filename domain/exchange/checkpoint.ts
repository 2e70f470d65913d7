/** Writes a state as chunks of bounded size, and builds a state from them. */
import { invariant } from '../invariant.ts'
import { createState, type ExchangeState, tablesOf } from './state.ts'
import { STATE_VERSION } from './state-version.ts'

/** A piece of one table. `table` is the table's index in `tablesOf`. */
export interface Chunk {
  readonly version: number
  readonly table: number
  readonly bytes: Uint8Array
}

/**
 * Chunks of the state. Their sequence depends on its history.
 * The state must not change before the last chunk is read.
 */
export function* serialize(state: ExchangeState): Generator<Chunk> {
  for (const [table, rows] of tablesOf(state).entries())
    for (const bytes of rows.chunks()) yield { version: STATE_VERSION, table, bytes }
}

/** Builds a state from all chunks, in any order. Throws if a chunk has another version. */
export function load(chunks: Iterable<Chunk>): ExchangeState {
  const state = createState()
  for (const chunk of chunks) loadChunk(state, chunk)
  return state
}

/** Adds one chunk to a state under construction, so that a caller can do other work between chunks. */
export function loadChunk(state: ExchangeState, { version, table, bytes }: Chunk): void {
  invariant(version === STATE_VERSION, `a chunk has state version ${STATE_VERSION}, received ${version}`)
  const rows = tablesOf(state)[table]
  invariant(rows !== undefined, `a chunk is of a table of the state, received ${table}`)
  rows.loadChunk(bytes)
  state.core.undo.clear()
}
