/** Files of an account's rows as CSV: one per account and process at a time, because a file costs many reads. */
import { finished } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { ApiError } from '../errors.ts'
import { type Cell, csvStream } from '../wire/csv.ts'
import type { Cursor } from '../wire/cursor.ts'
import { MAX_PAGE } from '../wire/schema.ts'

/** Maximum rows of a file. A client continues after the last row. */
export const MAX_CSV_ROWS = 100_000

export interface CsvPage {
  readonly limit: number
  readonly after: Cursor | null
}

export interface CsvExport<Row> {
  readonly userId: number
  readonly fileName: string
  readonly header: readonly string[]
  readonly page: CsvPage
  /** At most `limit` rows of what the query asks for. */
  readonly read: (page: CsvPage) => Promise<readonly Row[]>
  readonly placeOf: (row: Row) => Cursor
  readonly line: (row: Row) => readonly Cell[]
}

const exporting = new Set<number>()

export async function answerCsv<Row>(
  reply: FastifyReply,
  { userId, fileName, header, page, read, placeOf, line }: CsvExport<Row>,
): Promise<FastifyReply> {
  if (exporting.has(userId)) throw new ApiError('EXPORT_RUNNING', {}, '1')
  exporting.add(userId)
  const release = () => exporting.delete(userId)
  const pageSize = Math.min(page.limit, MAX_PAGE)
  try {
    const stream = csvStream({
      header,
      limit: page.limit,
      pageSize,
      first: await read({ limit: pageSize, after: page.after }),
      next: (last: Row) => read({ limit: pageSize, after: placeOf(last) }),
      line,
      onEnd: release,
    })
    // The response to a HEAD request, or one whose client has left, does not read the stream to its end.
    finished(reply.raw, () => stream.destroy())
    return reply
      .header('content-disposition', `attachment; filename="${fileName}"`)
      .type('text/csv; charset=utf-8; header=present')
      .send(stream)
  } catch (error) {
    release()
    throw error
  }
}
