/** Operations shared by the two kinds of tables in a state. */
import type { Digest } from './digest.ts'
import type { UndoLog } from './undo-log.ts'

/** Objects shared by the tables of one state. */
export interface StateCore {
  readonly digest: Digest
  readonly undo: UndoLog
}

/**
 * Called with a row before and after a change, also when it is undone; undefined: absent. An observer of a record table
 * never keeps the row: a loaded row decodes its record when it is read.
 */
export type Observer<Row> = (before: Row | undefined, after: Row | undefined) => void

/** Observer of a record table; it also receives the slot of the record. */
export type SlotObserver<Row> = (before: Row | undefined, after: Row | undefined, slot: number) => void

/** Table operations that checkpoints and comparisons use. */
export interface Table {
  readonly name: string
  readonly size: number
  /** Bytes of all rows, in chunks of bounded size. The table must not change meanwhile. */
  chunks(): IterableIterator<Uint8Array>
  /** Inserts the rows of a chunk, none of which the table has. */
  loadChunk(bytes: Uint8Array): void
}

/** Approximate chunk size in bytes. A chunk is encoded or loaded without a pause. */
export const CHUNK_BYTES = 1 << 16
