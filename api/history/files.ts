/**
 * Files of the public history, built on request and kept while there is room. Each build is compared with the first, so
 * that a file never changes.
 */

import type { Readable } from 'node:stream'
import type { Db, Tx } from '../../db/client.ts'
import { type FileKey, type StoredFile, storeCompressed, storeFile } from '../../db/history-files.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { ApiError } from '../errors.ts'
import { dayText } from '../wire/days.ts'
import { type BuiltFile, buildFile, readFile } from './build.ts'
import { CONTENTS } from './content.ts'

export interface HistoryConfig {
  /** Folder of the files that are kept. */
  readonly directory: string
  /** Most bytes of the files that are kept. */
  readonly keptBytes: number
  /** Files that are built at a time. */
  readonly builds: number
  /** Bound of the wait for a build, ms. */
  readonly waitMs: number
  /** After the end of a day, ms, before its files can be final. */
  readonly graceMs: number
  /** Days after which files are no longer served; 0: never. */
  readonly retentionDays: number
}

export interface HistoryFilesPorts {
  readonly db: Db
  readonly logger: Record<'warn' | 'error', (details: object, message: string) => void>
  readonly now: () => number
  /** Reads tables of the read model once they are complete. */
  readonly read: <Value>(shard: string, query: (db: Db | Tx) => Promise<Value>) => Promise<Value>
}

export interface HistoryFile extends Pick<BuiltFile, 'sha256' | 'size'> {
  /** The reader must end or destroy the stream. */
  readonly open: () => Readable
}

/** Files that wait to be built while others are. */
const MOST_WAITING = 16

const DROP_DELAY_MS = 1_000

/** Seconds after which a build that took too long may have ended. */
const RETRY_AFTER = '5'

class KeptFile implements HistoryFile {
  readonly #built: BuiltFile
  #readers = 0
  #isDropped = false

  constructor(built: BuiltFile) {
    this.#built = built
  }

  get sha256(): string {
    return this.#built.sha256
  }

  get size(): number {
    return this.#built.size
  }

  open(): Readable {
    this.#readers++
    const stream = readFile(this.#built.handle)
    stream.once('close', () => {
      this.#readers--
      this.#close()
    })
    return stream
  }

  /** Requests that have just received the file open it within the delay. */
  drop(delayMs: number): void {
    const drop = (): void => {
      this.#isDropped = true
      this.#close()
    }
    if (delayMs === 0) drop()
    else setTimeout(drop, delayMs).unref()
  }

  #close(): void {
    if (this.#isDropped && this.#readers === 0) void this.#built.handle.close().catch(() => {})
  }
}

const nameOf = ({ kind, marketId, day }: FileKey): string => `${kind}/${marketId}/${dayText(day)}`

export function createHistoryFiles(ports: HistoryFilesPorts, config: HistoryConfig) {
  /** Kept files in order of use: the file that was requested last comes last. */
  const kept = new Map<string, KeptFile>()
  const building = new Map<string, Promise<KeptFile>>()
  const queue: (() => void)[] = []
  const stopped = new AbortController()
  let running = 0

  function keep(name: string, file: KeptFile): void {
    kept.set(name, file)
    let bytes = [...kept.values()].reduce((sum, { size }) => sum + size, 0)
    for (const [oldest, { size }] of [...kept]) {
      if (bytes <= config.keptBytes || oldest === name) break
      kept.get(oldest)?.drop(DROP_DELAY_MS)
      kept.delete(oldest)
      bytes -= size
    }
  }

  async function turn<Value>(work: () => Promise<Value>): Promise<Value> {
    if (running >= config.builds) await new Promise<void>((resolve) => queue.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      const next = queue.shift()
      if (next === undefined) running--
      else next()
    }
  }

  async function build(key: FileKey, spec: MarketSpec): Promise<KeptFile> {
    const content = CONTENTS[key.kind]
    const source = {
      spec,
      content,
      page: (page: Parameters<typeof content.page>[2]) =>
        ports.read(marketShard(key.marketId), (db) => content.page(db, key, page)),
    }
    const built = await buildFile(config.directory, source, stopped.signal)
    try {
      await compare(ports, key, built)
    } catch (error) {
      await built.handle.close()
      throw error
    }
    return new KeptFile(built)
  }

  function start(name: string, key: FileKey, spec: MarketSpec): Promise<KeptFile> {
    if (queue.length >= MOST_WAITING) throw new ApiError('HISTORY_CAPACITY', {}, RETRY_AFTER)
    const started = turn(() => build(key, spec))
      .then((file) => {
        keep(name, file)
        return file
      })
      .finally(() => building.delete(name))
    // A build goes on after the requests that wait for it have given up.
    started.catch(() => {})
    building.set(name, started)
    return started
  }

  return {
    /** Throws HISTORY_CAPACITY if the file is not ready in time: its build continues. */
    async file(key: FileKey, spec: MarketSpec): Promise<HistoryFile> {
      const name = nameOf(key)
      const ready = kept.get(name)
      if (ready !== undefined) {
        kept.delete(name)
        kept.set(name, ready)
        return ready
      }
      return within(building.get(name) ?? start(name, key, spec), config.waitMs)
    },
    stop(): void {
      stopped.abort(new ApiError('SHUTTING_DOWN', {}, '1'))
      for (const file of kept.values()) file.drop(0)
      kept.clear()
    },
  }
}

export type HistoryFiles = ReturnType<typeof createHistoryFiles>

async function within<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new ApiError('HISTORY_CAPACITY', {}, RETRY_AFTER)), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Throws HISTORY_CHANGED if the first build had another content. */
async function compare(
  { db, logger, now }: HistoryFilesPorts,
  key: FileKey,
  built: BuiltFile,
): Promise<void> {
  const { rows, contentSha256: content_sha256, sha256, size } = built
  const { kind, marketId: market_id, day } = key
  const file: StoredFile = { kind, market_id, day, rows, content_sha256, sha256, size, built_at: now() }
  const first = await storeFile(db, file)
  if (first.content_sha256 !== content_sha256) {
    logger.error({ first, file }, 'a file of the history differs from its first build')
    throw new ApiError('HISTORY_CHANGED', {
      file: nameOf(key),
      first_content_sha256: first.content_sha256,
      content_sha256,
    })
  }
  if (first.sha256 === sha256) return
  logger.warn({ first, file }, 'a file of the history is compressed differently')
  await storeCompressed(db, file)
}
