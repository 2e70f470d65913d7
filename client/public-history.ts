/** Files of the public market history: their list, and downloads with verified digests. */
import { ClearbatchError, CODES } from './errors.ts'
import type { HttpSession } from './http-session.ts'
import type { HistoryFile, HistoryKind, HistoryPage } from './market-history.ts'

export interface HistoryOptions {
  readonly kind?: HistoryKind
  readonly marketId?: number
  /** First day, for example `2026-11-22`. */
  readonly from?: string
  /** Day after the last day. */
  readonly to?: string
  readonly limit?: number
  readonly cursor?: string
}

/** Timeout of a download; a file is built at its first request. */
const FILE_TIMEOUT_MS = 300_000

export class PublicHistory {
  readonly #http: HttpSession

  /** `client` may have a credential or none. */
  constructor({ http }: { readonly http: HttpSession }) {
    this.#http = http
  }

  /** Files that can be downloaded, the newest day first. */
  async page(options: HistoryOptions = {}): Promise<HistoryPage> {
    const { marketId, ...query } = options
    return this.#http.get('/v0/history', { ...query, market_id: marketId })
  }

  /** All files, page by page. */
  async *files(options: HistoryOptions = {}): AsyncGenerator<HistoryFile, void> {
    let { cursor } = options
    do {
      const page = await this.page({ ...options, ...(cursor !== undefined && { cursor }) })
      yield* page.files
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
  }

  /**
   * Downloads the compressed file. Throws if its digest differs from the response header,
   * or if its content differs from the first build. The list names that digest after the first request.
   */
  async download(file: Pick<HistoryFile, 'path' | 'content_sha256'>): Promise<Uint8Array<ArrayBuffer>> {
    const { path, content_sha256 } = file
    const { bytes, etag } = await this.#http.file(path, FILE_TIMEOUT_MS)
    expectDigest(path, 'file', `"${await sha256(bytes)}"`, etag)
    if (content_sha256 !== null)
      expectDigest(path, 'content', await sha256(await unzipped(bytes)), content_sha256)
    return bytes
  }

  /** Rows of the file: column names with cell texts. */
  async rows(file: Pick<HistoryFile, 'path' | 'content_sha256'>): Promise<readonly Record<string, string>[]> {
    const text = new TextDecoder().decode(await unzipped(await this.download(file)))
    const [header = '', ...lines] = text.split('\r\n').slice(0, -1)
    const names = header.split(',')
    // No cell of these files has a comma or a quote.
    return lines.map((line) =>
      Object.fromEntries(line.split(',').map((cell, at) => [names[at] as string, cell])),
    )
  }
}

const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> =>
  [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')

async function unzipped(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

function expectDigest(
  path: string,
  what: 'file' | 'content',
  received: string,
  expected: string | null,
): void {
  // A compressing proxy marks the tag as weak.
  if (expected?.replace(/^W\//, '') === received) return
  throw new ClearbatchError(`the ${what} of ${path} has the digest ${received}, expected ${expected}`, {
    code: CODES.digest,
    outcome: null,
    retryable: false,
  })
}
