/** Puts a recording in the place of a market's simulated source, and watches the feed until the recording ends. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MarketSpec } from '../../domain/market/market.ts'
import { toDecimal } from '../../domain/units.ts'
import { type Recording, readRecording } from '../../keeper/adapters/sources/recording.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { type Admin, exclusively } from '../admin.ts'
import { readJson, writePrivate } from '../data-dir.ts'
import { StackError } from '../options.ts'
import type { FeedEntry, PriceConfig } from '../price-config.ts'
import { type FeedRun, FeedWatch, type Limits } from './watch.ts'

export interface FeedOptions {
  readonly market: string
  readonly path: string
  readonly speed: number
  /** Recorded minutes. */
  readonly minutes: number
  readonly isAbsolute: boolean
}

/** The keeper reads its configuration every second. */
const LEAD_MS = 1_500
const WATCH_MS = 100
const REPORT_MS = 10_000
/** After the last reading: until its report is there. */
const TAIL_MS = 1_000
/** The age of a reading that the simulated source has, too. */
const LEAST_AGE_MS = 5_000

export async function feed(
  admin: Admin,
  options: FeedOptions,
  stopped: AbortSignal,
  report: (line: string) => void,
): Promise<FeedRun> {
  const spec = admin.specs.find(({ symbol }) => symbol === options.market)
  if (spec === undefined) {
    const known = admin.specs.map(({ symbol }) => symbol).join(', ')
    throw new StackError(`--market must be one of ${known}, not ${options.market}`)
  }
  const recording = await readRecording(options.path)
  const watch = new FeedWatch(admin.db, spec, await limitsOf(admin, spec))
  const startedAt = Date.now() + LEAD_MS
  const { speed, minutes } = options
  const recordedMs = Math.min(recording.last.knownAt - recording.first.knownAt, minutes * 60_000)
  const source = sourceOf(recording, options, {
    startedAt,
    to: isScaled(spec, options) ? await watch.price() : null,
  })
  const restore = await replaceSource(admin, spec, source)
  const endsAt = startedAt + recordedMs / speed + TAIL_MS
  report(
    `${spec.symbol} follows ${recording.length} recorded prices for ${Math.ceil((endsAt - Date.now()) / 1_000)} s; ` +
      "Ctrl-C returns it to the stack's own source",
  )
  try {
    let reportedAt = Date.now()
    while (Date.now() < endsAt && !stopped.aborted) {
      await watch.look()
      if (Date.now() - reportedAt >= REPORT_MS) {
        reportedAt = Date.now()
        report(watch.line((100 * (reportedAt - startedAt)) / (endsAt - startedAt)))
      }
      await sleep(WATCH_MS)
    }
  } finally {
    await restore()
  }
  const readings = readingsUntil(
    recording,
    recording.first.knownAt + (Date.now() - startedAt) * speed,
    minutes,
  )
  return watch.result({ readings, path: options.path, speed })
}

/** A probability is no distance in per cent: scaled, it could exceed 1. */
const isScaled = ({ kind }: MarketSpec, { isAbsolute }: FeedOptions): boolean =>
  !isAbsolute && kind !== 'binary_future'

async function limitsOf({ provider }: Admin, { trader, kind }: MarketSpec): Promise<Limits> {
  const { reportMaxAge, moveBase, moveSlope, moveWindow } = await IsolatedTrader__factory.connect(
    trader,
    provider,
  ).parameters()
  return {
    maxAge: Number(reportMaxAge),
    move: { kind, moveBase, moveSlope, moveWindow: Number(moveWindow) as Limits['move']['moveWindow'] },
  }
}

interface SourceStart {
  readonly startedAt: number
  /** Published value of the first recorded price; null: as recorded. */
  readonly to: bigint | null
}

function sourceOf(
  { barMs, first }: Recording,
  { path, speed }: FeedOptions,
  { startedAt, to }: SourceStart,
): Readonly<Record<string, unknown>> {
  const scale = to === null ? {} : { scale: { from: toDecimal(first.price), to: toDecimal(to) } }
  return {
    ...{ name: 'recording', kind: 'recording', path, speed, started_at_ms: startedAt, ...scale },
    // A bar's price stays until the next bar; a minute without a trade has no bar.
    max_age_ms: Math.max(LEAST_AGE_MS, Math.ceil((2.5 * barMs) / speed)),
  }
}

/** Returns the function that puts the market's sources back. Feeds of other markets may change the file at the same time. */
export async function replaceSource(
  { db, pricesFile: file }: Pick<Admin, 'db' | 'pricesFile'>,
  { marketId }: Pick<MarketSpec, 'marketId'>,
  source: Readonly<Record<string, unknown>>,
): Promise<() => Promise<void>> {
  const alone = <Result>(work: () => Result): Promise<Result> =>
    exclusively(db, 'stack prices', async () => work())
  const isIndex = (entry: FeedEntry): boolean => entry.market_id === marketId && entry.feed === 'index'
  const read = (): PriceConfig => {
    const config = readJson<PriceConfig>(file)
    if (config === null) throw new StackError(`${file} does not exist: the stack is not running`)
    return config
  }
  const put = (sources: FeedEntry['sources']): void => {
    const config = read()
    const feeds = config.feeds.map((entry) =>
      isIndex(entry) && sources !== undefined ? { ...entry, sources } : entry,
    )
    writePrivate(file, { ...config, feeds })
  }
  const before = await alone(() => {
    const sources = read().feeds.find(isIndex)?.sources
    if (sources?.some(({ kind }) => kind === 'recording'))
      throw new StackError(`a recording feeds this market already: stop that program, or restart the stack`)
    put([source])
    return sources
  })
  return () => alone(() => put(before))
}

function readingsUntil(recording: Recording, knownAt: number, minutes: number): number {
  const end = Math.min(knownAt, recording.first.knownAt + minutes * 60_000)
  let count = 0
  while (count < recording.length && recording.at(count).knownAt <= end) count++
  return count
}
