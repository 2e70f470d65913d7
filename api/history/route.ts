/** The public history of markets as files: one per kind, market and day. */

import { finished } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../../db/client.ts'
import { type FileKey, storedFile } from '../../db/history-files.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { HISTORY_KINDS, type HistoryKind } from '../../domain/market-data/history-kind.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import { isListed, markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { isoTime } from '../wire/amounts.ts'
import { type Cursor, decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { DAY, dayText, startOfDay } from '../wire/days.ts'
import { createHistoryFiles, type HistoryConfig, type HistoryFilesPorts } from './files.ts'
import { availableDays, filesInRange, type ListedFile, withBuilds } from './list.ts'
import { HISTORY_TABLES, type HistoryDays, historyDays } from './query.ts'
import { History, HistoryFileParams, HistoryQuery, type HistoryFile as ShownFile } from './schema.ts'

export interface HistoryPorts extends ReadPorts {
  readonly db: Db
  readonly clock: Clock
  readonly logger: HistoryFilesPorts['logger']
  readonly config: { readonly history: HistoryConfig }
}

export function historyRoutes(app: App, ports: HistoryPorts): void {
  listOfFiles(app, ports)
  fileOfDay(app, ports)
}

/** First day whose files have not expired. */
const oldestDay = ({ clock, config }: HistoryPorts): number => {
  const { retentionDays } = config.history
  return retentionDays === 0 ? 0 : Math.floor(clock.now() / DAY) * DAY - retentionDays * DAY
}

const finality = ({ clock, config }: HistoryPorts) => ({ now: clock.now(), graceMs: config.history.graceMs })

const WITHOUT_BOOKMARK = { query: {}, caller: null, ip: '' } as const

// ---------------------------------------------------------------------- list

const LIST = `
Every file that can be requested: a day of a market is listed once all of its batches are final and some time has passed. A file is built when it is first
requested; from then on its content never changes, and \`content_sha256\` is its digest. Days of an ended market end with the day of its end.
`.trim()

function listOfFiles(app: App, ports: HistoryPorts): void {
  const { db, markets, readAfter } = ports
  app.get(
    '/v0/history',
    {
      config: { cached: true, errors: ['READ_MODEL_FILLING'] },
      schema: {
        tags: ['markets'],
        summary: 'List the files of the public history, newest first',
        description: LIST,
        operationId: 'listHistory',
        querystring: HistoryQuery,
        response: { 200: History },
      },
    },
    async ({ query }) => {
      const { kind, market_id: marketId, limit = 100, cursor } = query
      const range = {
        kind,
        limit,
        after: placeOf(cursor),
        from: query.from === undefined ? null : startOfDay('from', query.from),
        to: query.to === undefined ? null : startOfDay('to', query.to),
      }
      const days = await readAfter.read(WITHOUT_BOOKMARK, { tables: HISTORY_TABLES }, (reader) =>
        historyDays(reader, finality(ports), marketId),
      )
      const keys = filesInRange(days, oldestDay(ports), range)
      const { page, next_cursor } = pageOf('history', keys, limit, cursorOf)
      const files = await withBuilds(db, page)
      const specs = await markets.byIds(page.map((key) => key.marketId))
      const { retentionDays } = ports.config.history
      return {
        files: files.map((file) => fileView(specOf(specs, { market_id: file.key.marketId }), file)),
        retention_days: retentionDays === 0 ? null : retentionDays,
        next_cursor,
      }
    },
  )
}

const fileView = (spec: MarketSpec, { key: { kind, marketId, day }, built }: ListedFile): ShownFile => ({
  kind,
  market_id: marketId,
  symbol: spec.symbol,
  day: dayText(day),
  path: `/v0/history/${kind}/${marketId}/${dayText(day)}.csv.gz`,
  rows: built?.rows ?? null,
  size: built?.size ?? null,
  sha256: built?.sha256 ?? null,
  content_sha256: built?.content_sha256 ?? null,
})

const cursorOf = ({ kind, marketId, day }: FileKey): Cursor => ({ at: day, id: `${marketId}-${kind}` })

function placeOf(text: string | undefined): FileKey | null {
  const cursor = decodeCursor('history', text)
  if (cursor === null) return null
  const match = /^(\d{1,10})-([a-z]+)$/.exec(cursor.id)
  const kind = match?.[2] as HistoryKind
  if (match === null || !HISTORY_KINDS.includes(kind) || cursor.at % DAY !== 0)
    throw invalidCursor(text as string)
  return { kind, marketId: Number(match[1]), day: cursor.at }
}

// ---------------------------------------------------------------------- file

const FILE = `
A CSV (RFC 4180) with a header line, compressed with gzip; amounts are exact decimals, times ISO 8601. \`fills\`: confirmed fills in the order of batch, part and
place, both sides of every trade, without their owners. \`auctions\`: batches in their order, also voided ones. \`candles\`: clearing prices of the minutes
in which an auction matched. \`funding\`: mined funding rates by the time from which they apply. The \`ETag\` is the SHA-256 of the file.
`.trim()

function fileOfDay(app: App, ports: HistoryPorts): void {
  const { db, markets, readAfter, logger, clock } = ports
  const files = createHistoryFiles(
    {
      db,
      logger,
      now: () => clock.now(),
      read: (shard, query) => readAfter.read(WITHOUT_BOOKMARK, { tables: HISTORY_TABLES, shard }, query),
    },
    ports.config.history,
  )
  app.addHook('onClose', async () => files.stop())
  app.get(
    '/v0/history/:kind/:market_id/:day.csv.gz',
    {
      config: {
        cached: true,
        errors: [
          ...([
            'HISTORY_NOT_FINAL',
            'HISTORY_BEFORE_LISTING',
            'HISTORY_AFTER_END',
            'HISTORY_EXPIRED',
          ] as const),
          ...(['HISTORY_CHANGED', 'HISTORY_CAPACITY', 'READ_MODEL_FILLING'] as const),
        ],
        sends: ['Content-Disposition'],
      },
      schema: {
        tags: ['markets'],
        summary: 'Get a file of the public history',
        description: FILE,
        operationId: 'getHistoryFile',
        params: HistoryFileParams,
        response: {
          200: {
            description: 'The file.',
            content: { 'application/gzip': { schema: { type: 'string', format: 'binary' } } },
          },
        },
      },
    },
    async (request, reply) => {
      const { kind, market_id } = request.params
      const spec = await markets.byId(market_id)
      const key: FileKey = { kind, marketId: spec.marketId, day: startOfDay('day', request.params.day) }
      const scope = { tables: HISTORY_TABLES, shard: marketShard(spec.marketId) }
      const [days] = await readAfter.read(WITHOUT_BOOKMARK, scope, (reader) =>
        historyDays(reader, finality(ports), spec.marketId),
      )
      expectAvailable(key, days as HistoryDays, ports)
      return sendFile(request as FastifyRequest, reply as FastifyReply, {
        key,
        known: (await storedFile(db, key))?.sha256 ?? null,
        file: () => files.file(key, spec),
      }) as never
    },
  )
}

interface Sending {
  readonly key: FileKey
  /** Digest of the file as it was built last; null if it was never built. */
  readonly known: string | null
  readonly file: () => ReturnType<ReturnType<typeof createHistoryFiles>['file']>
}

async function sendFile(request: FastifyRequest, reply: FastifyReply, { key, known, file }: Sending) {
  const answer = (sha256: string): string => {
    const tag = `"${sha256}"`
    reply.header('etag', tag)
    markImmutable(reply)
    return tag
  }
  if (known !== null && isListed(request.headers['if-none-match'], `"${known}"`)) {
    answer(known)
    return reply.code(304).send()
  }
  const found = await file()
  answer(found.sha256)
  reply
    .type('application/gzip')
    .header('content-length', found.size)
    .header(
      'content-disposition',
      `attachment; filename="${key.kind}-${key.marketId}-${dayText(key.day)}.csv.gz"`,
    )
  const stream = found.open()
  // The response to a HEAD request, or one whose client has left, does not read the stream to its end.
  finished(reply.raw, () => stream.destroy())
  return reply.send(stream)
}

/** Throws the reason for which the market has no file of the day. */
function expectAvailable({ day }: FileKey, days: HistoryDays, ports: HistoryPorts): void {
  const oldest = oldestDay(ports)
  const available = availableDays(days, oldest)
  if (available !== null && day >= available.first && day <= available.last) return
  const { clock, config } = ports
  const { first, last } = days
  const range = available && { first: dayText(available.first), last: dayText(available.last) }
  const context = {
    field: 'day',
    received: dayText(day),
    expected: range ?? 'a day of the list, which is empty',
  }
  const finalAt = day + DAY + config.history.graceMs
  if (day < oldest && (first === null || day >= first))
    throw new ApiError('HISTORY_EXPIRED', { ...context, nearest_valid: range?.first ?? null })
  if (first !== null && day < first)
    throw new ApiError('HISTORY_BEFORE_LISTING', { ...context, nearest_valid: range?.first ?? null })
  if (last !== null && day > last)
    throw new ApiError('HISTORY_AFTER_END', { ...context, nearest_valid: range?.last ?? null })
  if (first === null && finalAt <= clock.now())
    throw new ApiError('HISTORY_BEFORE_LISTING', { ...context, nearest_valid: null })
  // Once the time has passed, only unsettled batches or the indexer are awaited.
  const available_at = isoTime(Math.max(finalAt, clock.now()))
  throw new ApiError('HISTORY_NOT_FINAL', { ...context, nearest_valid: range?.last ?? null, available_at })
}
