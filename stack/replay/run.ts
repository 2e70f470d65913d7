/** Sends a recorded flow in its own rhythm, and lets the market's oracle say what the record traded at. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Millis } from '../../domain/units.ts'
import type { Admin } from '../admin.ts'
import { type TakenFeed, takeOverFeed } from '../feed.ts'
import { StackError } from '../options.ts'
import { latestPrice } from '../oracle.ts'
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
  /** How far the sender fell behind the record's rhythm at worst. */
  readonly lateMs: number
}

const DEPOSIT = 100_000_000n * 10n ** 18n
const IN_FLIGHT = 128
/** How long an aggressor made from a recorded execution may wait for the batch that it meets. */
const TAKE_LIFE_MS = 1_500
/** A recorded fill may be a batch early: what is left after this long is cancelled. */
const LATE_CANCEL_MS = 1_500

export async function replay(
  admin: Admin,
  lines: AsyncIterable<string>,
  options: ReplayOptions,
  say: (line: string) => void,
): Promise<Replayed> {
  const spec = admin.specs.find(({ symbol }) => symbol === options.market)
  if (spec === undefined) {
    const known = admin.specs.map(({ symbol }) => symbol).join(', ')
    throw new StackError(`there is no market ${options.market}: this stack has ${known}`)
  }
  const { actions, skipped } = await planAll(lines, options)
  const mapping = await mappingFor(admin, spec, actions)
  say(`${actions.length} actions for ${spec.symbol}; preparing ${options.accounts} accounts ...`)
  const count = Math.max(2, options.accounts)
  const keys = Array.from({ length: count }, (_, index) => admin.keys.replay(spec.marketId, index))
  const accounts = await admin.accounts(keys, DEPOSIT)

  const traders = createTraders(admin.file.base_url, spec, accounts)
  const feed = takeOverFeed(admin, spec.marketId)
  try {
    const from = Date.now() as Millis
    const { trades, lateMs } = await play(actions, { mapping, traders, feed, speed: options.speed, say })
    await sleep(LATE_CANCEL_MS)
    await traders.cancelAll()
    return { spec, accounts, sent: traders.sent, skipped, trades, from, until: Date.now() as Millis, lateMs }
  } finally {
    await feed.release()
  }
}

/** The whole file at once: some ten thousand lines, and the rhythm is not disturbed by reading. */
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
  if (actions.length === 0) throw new StackError('the file holds no order flow')
  return { actions, skipped: planner.skipped }
}

async function mappingFor({ db }: Admin, spec: MarketSpec, actions: readonly Action[]): Promise<Mapping> {
  const oracle = await latestPrice(db, spec.marketId)
  if (oracle === null) throw new StackError(`${spec.symbol} has no oracle price yet`)
  const first = actions.find(({ kind }) => kind === 'price') ?? actions.find(({ kind }) => kind === 'place')
  if (first === undefined || first.kind === 'cancel') throw new StackError('the file names no price')
  return createMapping({ spec, oracle, first: first.price })
}

interface Play {
  readonly mapping: Mapping
  readonly traders: Traders
  readonly feed: TakenFeed
  readonly speed: number
  readonly say: (line: string) => void
}

async function play(actions: readonly Action[], { mapping, traders, feed, speed, say }: Play) {
  const trades: Point[] = []
  const flying = new Set<Promise<void>>()
  const launch = (work: Promise<void>): void => {
    const flight = work.finally(() => flying.delete(flight))
    flying.add(flight)
  }
  const began = Date.now()
  const first = actions[0]?.at ?? 0
  let [lateMs, said] = [0, began]

  for (const [index, action] of actions.entries()) {
    const due = began + (action.at - first) / speed
    const early = due - Date.now()
    if (early > 1) await sleep(early)
    lateMs = Math.max(lateMs, Date.now() - due)
    if (action.kind === 'price') {
      feed.say(mapping.oraclePrice(action.price))
      trades.push({ at: Date.now(), price: mapping.ticks(action.price) })
    } else launch(act(action, mapping, traders))
    while (flying.size >= IN_FLIGHT) await Promise.race(flying)
    if (Date.now() - said > 5_000) {
      said = Date.now()
      const { orders, accepted, cancels } = traders.sent
      say(
        `${Math.round((100 * index) / actions.length)} %: ${orders} orders, ${accepted} accepted, ${cancels} cancels`,
      )
    }
  }
  await Promise.all(flying)
  return { trades, lateMs }
}

async function act(
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
