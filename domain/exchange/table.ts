/** The two kinds of tables that a state consists of have these operations in common. */
import type { Digest } from './digest.ts'
import type { UndoLog } from './undo-log.ts'

/** What tables of one state share. */
export interface StateCore {
  readonly digest: Digest
  readonly undo: UndoLog
}

/** Called with a row before and after a change; undefined: absent. It also runs when the change is undone. */
export type Observer<Row> = (before: Row | undefined, after: Row | undefined) => void

/** An observer of a table of records also learns in which slot the record is, or was. */
export type SlotObserver<Row> = (before: Row | undefined, after: Row | undefined, slot: number) => void

/** What checkpoints and comparisons need of a table. */
export interface Table {
  readonly name: string
  readonly size: number
  /** Bytes of all rows, in pieces of bounded size. The table must not change meanwhile. */
  chunks(): IterableIterator<Uint8Array>
  /** Puts the rows of a piece. */
  loadChunk(bytes: Uint8Array): void
}

/** Bytes of a piece, about: so many are encoded, or put, without a pause. */
export const CHUNK_BYTES = 1 << 18
