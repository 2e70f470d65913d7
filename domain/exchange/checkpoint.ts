/** Writes a state as chunks of bounded size, and builds a state from them. */
import { invariant } from '../invariant.ts'
import { createState, type ExchangeState, STATE_VERSION, tablesOf } from './state.ts'

/** A piece of one table. `table` counts the tables of the state in their order. */
export interface Chunk {
  readonly version: number
  readonly table: number
  readonly bytes: Uint8Array
}

/** The chunks of the state, whose sequence depends on its history. The state must not change before the last one. */
export function* serialize(state: ExchangeState): Generator<Chunk> {
  for (const [table, rows] of tablesOf(state).entries())
    for (const bytes of rows.chunks()) yield { version: STATE_VERSION, table, bytes }
}

/** Builds a state from all chunks, in any order. Throws if one of them is of another version. */
export function load(chunks: Iterable<Chunk>): ExchangeState {
  const state = createState()
  for (const chunk of chunks) loadChunk(state, chunk)
  return state
}

/** Adds one chunk to a state that is being built: a caller with other work loads them one after the other. */
export function loadChunk(state: ExchangeState, { version, table, bytes }: Chunk): void {
  invariant(version === STATE_VERSION, `a chunk has state version ${STATE_VERSION}, received ${version}`)
  const rows = tablesOf(state)[table]
  invariant(rows !== undefined, `a chunk is of a table of the state, received ${table}`)
  rows.loadChunk(bytes)
  state.core.undo.clear()
}
