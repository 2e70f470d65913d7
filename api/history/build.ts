/** Builds a file page by page, so that its size costs neither memory nor a long transaction. */
import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip } from 'node:zlib'
import type { MarketSpec } from '../../domain/market/market.ts'
import { csvLine } from '../wire/csv.ts'
import type { Content } from './content.ts'
import type { RowPage } from './query.ts'

/** Rows of a page: few milliseconds of this process, between which it serves other requests. */
const PAGE_ROWS = 250

export interface BuiltFile {
  /** The file has no name any more: closing the handle deletes it, and so does the end of the process. */
  readonly handle: FileHandle
  readonly rows: number
  readonly contentSha256: string
  readonly sha256: string
  readonly size: number
}

export interface FileSource<Row> {
  readonly spec: MarketSpec
  readonly content: Pick<Content<Row>, 'columns' | 'cells'>
  readonly page: (page: RowPage<Row>) => Promise<readonly Row[]>
}

/** Passes chunks on, and knows their digest and size. */
function measure() {
  const hash = createHash('sha256')
  let size = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      size += chunk.length
      done(null, chunk)
    },
  })
  return { stream, digest: () => hash.digest('hex'), size: () => size }
}

async function* pagesOf<Row>({ spec, content, page }: FileSource<Row>, onRows: (count: number) => void) {
  yield csvLine(content.columns)
  for (let after: Row | null = null; ; ) {
    const rows: readonly Row[] = await page({ limit: PAGE_ROWS, after })
    onRows(rows.length)
    if (rows.length > 0) yield rows.map((row) => csvLine(content.cells(spec, row))).join('')
    if (rows.length < PAGE_ROWS) return
    after = rows.at(-1) as Row
  }
}

/** `directory`: where the file lies while it is needed. The compressed bytes have neither a time nor a name in them. */
export async function buildFile<Row>(
  directory: string,
  source: FileSource<Row>,
  signal: AbortSignal,
): Promise<BuiltFile> {
  const path = join(directory, `history-${randomUUID()}`)
  const handle = await open(path, 'wx+', 0o600)
  try {
    await unlink(path)
    const [content, file] = [measure(), measure()]
    let rows = 0
    const pages = pagesOf(source, (count) => {
      rows += count
    })
    const gzip = createGzip({ level: constants.Z_DEFAULT_COMPRESSION })
    const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of chunks) await handle.appendFile(chunk)
    }
    await pipeline(pages, content.stream, gzip, file.stream, write, { signal })
    return { handle, rows, contentSha256: content.digest(), sha256: file.digest(), size: file.size() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

const CHUNK_BYTES = 64 * 1024

async function* chunksOf(handle: FileHandle): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    position += bytesRead
  }
}

/** The whole file, whatever else reads it. A stream of Node on the handle would close the handle at its own end. */
export const readFile = (handle: FileHandle): Readable =>
  Readable.from(chunksOf(handle), { objectMode: false, highWaterMark: CHUNK_BYTES })
