/** Sends recorded order flow with its recorded timing, while the market's oracle price follows the recorded trades. */
import { setTimeout as sleep } from 'node:timers/promises'
import { latestReport } from '../../db/oracle-reports.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Millis } from '../../domain/units.ts'
import type { Admin } from '../admin.ts'
import { FeedCopies } from '../audit/feed-copies.ts'
import { type FeedOverride, overrideFeed } from '../feed-override.ts'
import { StackError } from '../options.ts'
import type { StackAccount } from '../stack-file.ts'
import { createMapping, type Mapping } from './mapping.ts'
import { type Action, createPlanner } from './plan.ts'
import { readerFor } from './recorded.ts'
import type { Point } from './statistics.ts'
import { createTraders, type Sent, type Traders } from './traders.ts'

export interface ReplayOptions {
  readonly market: string
  readonly speed: number
  readonly limit: number
  readonly minutes: number
  readonly accounts: number
  /** Copies follow the live feed. */
  readonly feed: boolean
  /** The proofs of the batches are to be verified. */
  readonly verify: boolean
}

export interface Replayed {
  readonly spec: MarketSpec
  readonly accounts: readonly StackAccount[]
  readonly sent: Sent
  readonly skipped: number
  /** Recorded trades, at the time they were replayed and in ticks of the market. */
  readonly trades: readonly Point[]
  readonly from: Millis
  readonly until: Millis
  /** Maximum delay of an action behind its recorded time. */
  readonly lateMs: number
  /** Null if none were asked for. The caller closes them. */
  readonly copies: FeedCopies | null
  readonly verify: boolean
}

const DEPOSIT = 100_000_000n * 10n ** 18n
const MAX_IN_FLIGHT = 128
/** Lifetime of an aggressor that was derived from a recorded execution: long enough for the next batch. */
const TAKE_LIFE_MS = 1_500
/** A recorded fill may precede the batch that fills the order here, so its remainder is cancelled only after this time. */
const LATE_CANCEL_MS = 1_500

export async function replay(
  admin: Admin,
  lines: AsyncIterable<string>,
  options: ReplayOptions,
  report: (line: string) => void,
): Promise<Replayed> {
  const spec = admin.specs.find(({ symbol }) => symbol === options.market)
  if (spec === undefined) {
    const known = admin.specs.map(({ symbol }) => symbol).join(', ')
    throw new StackError(`--market must be one of ${known}, not ${options.market}`)
  }
  const { actions, skipped } = await planAll(lines, options)
  const mapping = await mappingFor(admin, spec, actions)
  report(`${actions.length} actions for ${spec.symbol}; preparing ${options.accounts} accounts ...`)
  const count = Math.max(2, options.accounts)
  const keys = Array.from({ length: count }, (_, index) => admin.keys.replay(spec.marketId, index))
  const accounts = await admin.accounts(keys, DEPOSIT)

  const traders = createTraders(admin.file.base_url, spec, accounts)
  const copies = options.feed
    ? new FeedCopies({ baseUrl: admin.file.base_url, marketIds: [spec.marketId], accounts })
    : null
  const feed = overrideFeed(admin, spec.marketId)
  try {
    await copies?.untilCurrent()
    const from = Date.now() as Millis
    const run = { mapping, traders, feed, speed: options.speed, report }
    const { trades, lateMs } = await sendActions(actions, run)
    await sleep(LATE_CANCEL_MS)
    await traders.cancelAll()
    const [until, { sent }, { verify }] = [Date.now() as Millis, traders, options]
    return { spec, accounts, sent, skipped, trades, from, until, lateMs, copies, verify }
  } catch (error) {
    copies?.close()
    throw error
  } finally {
    await feed.release()
  }
}

/** Reads the whole file first (some ten thousand lines), so that reading does not disturb the timing. */
async function planAll(lines: AsyncIterable<string>, { limit, minutes }: ReplayOptions) {
  const planner = createPlanner()
  const actions: Action[] = []
  let read: ReturnType<typeof readerFor> | null = null
  let count = 0
  for await (const line of lines) {
    if (read === null) {
      read = readerFor(line)
      continue
    }
    const planned = read(line).flatMap((event) => planner.plan(event))
    const first = actions[0]?.at ?? planned[0]?.at ?? 0
    if (++count > limit || (planned[0]?.at ?? first) - first > minutes * 60_000) break
    actions.push(...planned)
  }
  if (actions.length === 0) throw new StackError('--orders: the file contains no orders')
  return { actions, skipped: planner.skipped }
}

async function mappingFor({ db }: Admin, spec: MarketSpec, actions: readonly Action[]): Promise<Mapping> {
  const oracle = (await latestReport(db, { marketId: spec.marketId, feed: 'index' }))?.price ?? null
  if (oracle === null) throw new StackError(`${spec.symbol} has no oracle price yet`)
  const first = actions.find(({ kind }) => kind === 'price') ?? actions.find(({ kind }) => kind === 'place')
  if (first === undefined || first.kind === 'cancel')
    throw new StackError('--orders: the file contains no price')
  return createMapping({ spec, oracle, first: first.price })
}

interface ReplayRun {
  readonly mapping: Mapping
  readonly traders: Traders
  readonly feed: FeedOverride
  readonly speed: number
  readonly report: (line: string) => void
}

async function sendActions(actions: readonly Action[], { mapping, traders, feed, speed, report }: ReplayRun) {
  const trades: Point[] = []
  const inFlight = new Set<Promise<void>>()
  const launch = (work: Promise<void>): void => {
    const tracked = work.finally(() => inFlight.delete(tracked))
    inFlight.add(tracked)
  }
  const began = Date.now()
  const first = actions[0]?.at ?? 0
  let [lateMs, reportedAt] = [0, began]

  for (const [index, action] of actions.entries()) {
    const due = began + (action.at - first) / speed
    const early = due - Date.now()
    if (early > 1) await sleep(early)
    lateMs = Math.max(lateMs, Date.now() - due)
    if (action.kind === 'price') {
      feed.setPrice(mapping.oraclePrice(action.price))
      trades.push({ at: Date.now(), price: mapping.ticks(action.price) })
    } else launch(sendAction(action, mapping, traders))
    while (inFlight.size >= MAX_IN_FLIGHT) await Promise.race(inFlight)
    if (Date.now() - reportedAt > 5_000) {
      reportedAt = Date.now()
      const { orders, accepted, cancels } = traders.sent
      report(
        `${Math.round((100 * index) / actions.length)} %: ${orders} orders, ${accepted} accepted, ${cancels} cancels`,
      )
    }
  }
  await Promise.all(inFlight)
  return { trades, lateMs }
}

async function sendAction(
  action: Exclude<Action, { kind: 'price' }>,
  mapping: Mapping,
  traders: Traders,
): Promise<void> {
  if (action.kind === 'cancel') {
    if (action.late) await sleep(LATE_CANCEL_MS)
    return traders.cancel(action.ref)
  }
  const { ref, at, side, take } = action
  const order = { price: mapping.ticks(action.price), quantity: mapping.steps(action.size) }
  return traders.place({ ref, at, side, ...order, life: take ? TAKE_LIFE_MS : 0 })
}
