/** Query parameters shared by reads: bookmarks and pages. */
import type { Side } from '../domain/orders/order.ts'
import type { Bookmark } from './responses.ts'

export interface ReadOptions {
  /** The read shows at least the write that returned this bookmark. */
  readonly readAfter?: Bookmark
}

export interface PageOptions extends ReadOptions {
  readonly limit?: number
  readonly cursor?: string
}

/** Time range; times are ISO 8601 in UTC. */
export interface RangeOptions extends PageOptions {
  /** Start of the range, inclusive. */
  readonly from?: string
  /** End of the range, exclusive. */
  readonly to?: string
}

export interface ListOptions extends RangeOptions {
  readonly marketId?: number
  readonly side?: Side
}

/** A page of a list; every list is newest first. */
export interface Page {
  readonly next_cursor: string | null
}

export const bookmarkQuery = ({ readAfter }: ReadOptions): Record<string, string> =>
  readAfter === undefined
    ? {}
    : { read_after_shard_id: readAfter.shard_id, read_after_shard_seq: readAfter.shard_seq }

export const pageQuery = ({ limit, cursor, ...read }: PageOptions) => ({
  limit,
  cursor,
  ...bookmarkQuery(read),
})

export const rangeQuery = ({ from, to, ...page }: RangeOptions) => ({ from, to, ...pageQuery(page) })

export const listQuery = ({ marketId, side, ...page }: ListOptions) => ({
  market_id: marketId,
  side,
  ...rangeQuery(page),
})

/** Fetches pages in sequence until the last. */
export async function* pages<Result extends Page>(
  fetchPage: (cursor: string | undefined) => Promise<Result>,
): AsyncGenerator<Result> {
  let cursor: string | undefined
  do {
    const page = await fetchPage(cursor)
    yield page
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}
