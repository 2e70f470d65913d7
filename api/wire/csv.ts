/** Answers as CSV (RFC 4180) for those who ask for it, in pages, so that neither the process nor the database holds a whole list. */
import { Readable } from 'node:stream'

/** A number is written as it is; a text is quoted where necessary, and can be no formula of a spreadsheet. */
export type Cell = string | number | null | { readonly decimal: string }

const LINE_END = '\r\n'
/** Start of a cell that a spreadsheet would evaluate as a formula. */
const FORMULA = /^[=+\-@\t\r]/

export function csvCell(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell === 'number') return String(cell)
  if (typeof cell === 'object') return cell.decimal
  const text = FORMULA.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvLine = (cells: readonly Cell[]): string => cells.map(csvCell).join() + LINE_END

/** Whether an Accept header prefers CSV to JSON: by quality, then by order. Ranges such as `*` count as JSON. */
export function prefersCsv(accept: string | undefined): boolean {
  const ranges = (accept ?? '').split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    return { type, quality: quality === undefined ? 1 : Number(quality) }
  })
  const [best] = ranges
    .filter(({ type, quality }) => quality > 0 && /^(text\/csv|application\/(json|\*)|\*\/\*)$/.test(type))
    .sort((a, b) => b.quality - a.quality)
  return best?.type === 'text/csv'
}

export interface CsvPages<Row> {
  readonly header: readonly string[]
  readonly first: readonly Row[]
  readonly pageSize: number
  /** Most rows of the whole answer. */
  readonly limit: number
  /** The page after a row; empty at the end. */
  readonly next: (last: Row, size: number) => Promise<readonly Row[]>
  readonly line: (row: Row) => readonly Cell[]
  /** Called once: after the last row was read, or when the client has left. */
  readonly onEnd: () => void
}

async function* linesOf<Row>({ header, first, pageSize, limit, next, line }: CsvPages<Row>) {
  yield csvLine(header)
  let left = limit
  for (let page = first; page.length > 0; ) {
    const rows = page.slice(0, left)
    yield rows.map((row) => csvLine(line(row))).join('')
    left -= rows.length
    if (left === 0 || page.length < pageSize) return
    page = await next(rows.at(-1) as Row, pageSize)
  }
}

/** Reads the next page only once the client has received the previous page. */
export function csvStream<Row>(pages: CsvPages<Row>): Readable {
  let hasEnded = false
  const end = (): void => {
    if (!hasEnded) pages.onEnd()
    hasEnded = true
  }
  async function* lines() {
    yield* linesOf(pages)
    // The client may ask again as soon as it has the last line, which is before the stream closes.
    end()
  }
  return Readable.from(lines(), { highWaterMark: 1 }).once('close', end)
}
