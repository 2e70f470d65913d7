/** Cursors of lists that are ordered by a number and an id. Opaque to callers and valid only for the list that issued them. */
import { ApiError } from '../errors.ts'

/** Kinds of lists; a cursor of one kind is invalid for every other kind. */
export type List =
  | 'orders'
  | 'fills'
  | 'market-fills'
  | 'auctions'
  | 'order-events'
  | 'user-events'
  | 'user-events-by-time'
  | 'funding-rates'
  | 'liquidations'
  | 'own-liquidations'
  | 'withdrawals'
  | 'position-history'
  | 'pnl'
  | 'equity'
  | 'session-keys'
  | 'candles'
  | 'open-interest'
  | 'announcements'
  | 'builders'
  | 'builder-days'
  | 'history'

export interface Cursor {
  readonly at: number
  readonly id: string
}

export const encodeCursor = (list: List, { at, id }: Cursor): string =>
  Buffer.from(`${list}:${at}:${id}`).toString('base64url')

export const invalidCursor = (received: string): ApiError =>
  new ApiError('INVALID_CURSOR', { field: 'cursor', expected: '`next_cursor` of the page before', received })

export function decodeCursor(list: List, text: string | undefined): Cursor | null {
  if (text === undefined) return null
  const match = /^([a-z-]{1,20}):(\d{1,15}):([\w-]{1,80})$/.exec(
    Buffer.from(text, 'base64url').toString('latin1'),
  )
  const cursor = { at: Number(match?.[2]), id: match?.[3] ?? '' }
  if (match?.[1] !== list || encodeCursor(list, cursor) !== text) throw invalidCursor(text)
  return cursor
}

/** A page of at most `limit` rows from up to `limit + 1` rows, and the cursor of the next page. */
export function pageOf<Row>(list: List, rows: readonly Row[], limit: number, cursorOf: (row: Row) => Cursor) {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    page,
    next_cursor: rows.length > limit && last !== undefined ? encodeCursor(list, cursorOf(last)) : null,
  }
}
