/** `data download`: public history as gzipped CSV. Each page is appended with the cursor of the next, so that an interrupted download continues. */
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { Client } from '../../client/client.ts'
import type { CandleInterval, PriceType } from '../../client/market-history.ts'
import type { Page } from '../../client/queries.ts'
import { writePrivately } from '../config.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

export interface Download {
  readonly positionals: readonly string[]
  readonly market: string
  readonly from: string
  readonly to: string
  readonly output: string
  readonly interval: CandleInterval
  readonly price: PriceType
}

type Row = Readonly<Record<string, unknown>>

interface Source {
  readonly columns: readonly string[]
  /** The time of a row, for the progress. */
  readonly time: string
  readonly fetch: (options: {
    from: string
    to: string
    limit: number
    cursor?: string
  }) => Promise<Page & { rows: readonly object[] }>
}

/** Written after each page: the bytes of the file that are complete, and where the next page begins. */
interface Progress {
  readonly request: string
  readonly bytes: number
  readonly rows: number
  readonly cursor: string | null
}

export const KINDS = ['fills', 'auctions', 'candles', 'funding'] as const
const PAGE = 1000

function sourceOf(
  kind: (typeof KINDS)[number],
  { marketData }: Client,
  marketId: number,
  args: Download,
): Source {
  switch (kind) {
    case 'fills':
      return {
        columns: [
          'created_at',
          'fill_id',
          'batch_id',
          'part',
          'side',
          'price_e18_raw',
          'quantity_e18_raw',
          'taker_quantity_e18_raw',
          'forced',
          'status',
          'tx_hash',
        ],
        time: 'created_at',
        fetch: async (options) => {
          const page = await marketData.fillPage(marketId, options)
          return { ...page, rows: page.fills }
        },
      }
    case 'auctions':
      return {
        columns: [
          'as_of',
          'batch_id',
          'status',
          'price_e18_raw',
          'volume_e18_raw',
          'demand_e18_raw',
          'supply_e18_raw',
          'oracle_price_e18_raw',
          'rule',
        ],
        time: 'as_of',
        fetch: async (options) => {
          const page = await marketData.auctionPage(marketId, options)
          return { ...page, rows: page.auctions }
        },
      }
    case 'candles':
      return {
        columns: [
          'start',
          'open_e18_raw',
          'high_e18_raw',
          'low_e18_raw',
          'close_e18_raw',
          'volume_e18_raw',
          'trades',
          'fills',
          'is_gap',
          'is_final',
        ],
        time: 'start',
        fetch: async (options) => {
          const page = await marketData.candlePage(marketId, {
            ...options,
            interval: args.interval,
            priceType: args.price,
          })
          return { ...page, rows: page.candles }
        },
      }
    case 'funding':
      return {
        columns: ['applies_from', 'funding_rate_e18_raw', 'rate_per_step_e18_raw', 'funding_index_e18_raw'],
        time: 'applies_from',
        fetch: async (options) => {
          const page = await marketData.fundingRatePage(marketId, options)
          return { ...page, rows: page.funding_rates }
        },
      }
  }
}

const field = (value: unknown): string => {
  const text = value === null || value === undefined ? '' : String(value)
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const csv = (columns: readonly string[], rows: readonly object[]): string =>
  rows.map((row) => `${columns.map((name) => field((row as Row)[name])).join(',')}\n`).join('')

function instant(name: string, text: string): number {
  const at = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at))
    throw new CommandError(
      `--${name} must be a time such as 2026-11-22 or 2026-11-22T13:00:00Z; received ${text}`,
      EXIT.usage,
    )
  return at
}

export async function download(context: Context, args: Download) {
  const [kind] = args.positionals
  const found = KINDS.find((each) => each === kind)
  if (found === undefined)
    throw new CommandError(`expected one of ${KINDS.join(', ')}; received ${kind ?? 'nothing'}`, EXIT.usage)
  const [start, end] = [instant('from', args.from), instant('to', args.to)]
  if (start >= end)
    throw new CommandError(`--from must be before --to; received ${args.from} and ${args.to}`, EXIT.usage)
  if (!args.output.endsWith('.csv.gz') && !args.output.endsWith('.csv'))
    throw new CommandError(`--output must end with .csv or .csv.gz; received ${args.output}`, EXIT.usage)
  const client = context.anonymous()
  const { market_id, symbol } = await context.market(client, args.market)
  const source = sourceOf(found, client, market_id, args)
  const options = { from: new Date(start).toISOString(), to: new Date(end).toISOString(), limit: PAGE }
  const request = JSON.stringify([
    context.place.url,
    found,
    market_id,
    options,
    found === 'candles' ? [args.interval, args.price] : [],
  ])
  const rows = await fetchAll(context, { source, options, request, file: args.output, start, end })
  return { market: symbol, kind: found, rows, file: args.output }
}

interface Task {
  readonly source: Source
  readonly options: { readonly from: string; readonly to: string; readonly limit: number }
  readonly request: string
  readonly file: string
  readonly start: number
  readonly end: number
}

/** Pages come newest first, and so do the rows of the file. */
async function fetchAll(
  context: Context,
  { source, options, request, file, start, end }: Task,
): Promise<number> {
  const [partial, progressFile] = [`${file}.part`, `${file}.part.json`]
  // Members of gzip can follow one another: each page is one.
  const encode = (text: string): Buffer => (file.endsWith('.gz') ? gzipSync(text) : Buffer.from(text))
  let progress = resumed(partial, progressFile, request)
  if (progress === null) {
    if (existsSync(file))
      throw new CommandError(`${file} exists and is complete: delete it, or name another file by --output`)
    rmSync(partial, { force: true })
    const header = encode(`${source.columns.join(',')}\n`)
    appendFileSync(partial, header)
    progress = { request, bytes: header.length, rows: 0, cursor: null }
  } else context.terminal.note(`continuing after ${progress.rows} rows`)
  for (let isFirst = progress.rows === 0; isFirst || progress.cursor !== null; isFirst = false) {
    if (context.stopping.aborted)
      throw new CommandError(`stopped after ${progress.rows} rows: the same command continues`)
    const { cursor } = progress
    const page = await source.fetch({ ...options, ...(cursor === null ? {} : { cursor }) })
    const bytes = encode(csv(source.columns, page.rows))
    if (page.rows.length > 0) appendFileSync(partial, bytes)
    progress = {
      request,
      bytes: progress.bytes + (page.rows.length > 0 ? bytes.length : 0),
      rows: progress.rows + page.rows.length,
      cursor: page.next_cursor,
    }
    writePrivately(progressFile, JSON.stringify(progress))
    const last = page.rows.at(-1) as Row | undefined
    showProgress(
      context,
      progress.rows,
      last === undefined ? 1 : (end - Date.parse(String(last[source.time]))) / (end - start),
    )
  }
  renameSync(partial, file)
  rmSync(progressFile, { force: true })
  context.terminal.progress('')
  return progress.rows
}

/** Where an interrupted download of the same data continues. What was appended after the last complete page is cut off. */
function resumed(partial: string, progressFile: string, request: string): Progress | null {
  if (!existsSync(partial) || !existsSync(progressFile)) return null
  let progress: Progress
  try {
    progress = JSON.parse(readFileSync(progressFile, 'utf8')) as Progress
  } catch {
    return null
  }
  if (progress.request !== request || statSync(partial).size < progress.bytes) return null
  truncateSync(partial, progress.bytes)
  return progress
}

const BAR = 30

function showProgress({ terminal }: Context, rows: number, share: number): void {
  const full = Math.round(BAR * Math.min(1, Math.max(0, share)))
  terminal.progress(
    `[${'#'.repeat(full)}${'.'.repeat(BAR - full)}] ${Math.round((100 * full) / BAR)} %  ${rows} rows`,
  )
}
