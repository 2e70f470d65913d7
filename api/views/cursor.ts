/** Cursors of lists that are ordered by a time and an id, newest first. Opaque to callers. */
import { ApiError } from '../errors.ts'

export interface Cursor {
  readonly at: number
  readonly id: string
}

export const encodeCursor = ({ at, id }: Cursor): string => Buffer.from(`${at}:${id}`).toString('base64url')

export const invalidCursor = (received: string): ApiError =>
  new ApiError('INVALID_CURSOR', { field: 'cursor', expected: '`next_cursor` of the page before', received })

export function decodeCursor(text: string | undefined): Cursor | null {
  if (text === undefined) return null
  const match = /^(\d{1,15}):([\w-]{1,80})$/.exec(Buffer.from(text, 'base64url').toString('latin1'))
  if (match === null) throw invalidCursor(text)
  return { at: Number(match[1]), id: match[2] as string }
}

/** A page of `limit` from up to `limit + 1` rows, and the cursor of the next one. */
export function pageOf<Row>(rows: readonly Row[], limit: number, cursorOf: (row: Row) => Cursor) {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    page,
    next_cursor: rows.length > limit && last !== undefined ? encodeCursor(cursorOf(last)) : null,
  }
}
