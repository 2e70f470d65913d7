/** Recorded order flow as a flow of a measurement, by the plan of `npm run cb -- replay`. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { priceOf } from '../../domain/market/market.ts'
import type { Price, Steps, Ticks } from '../../domain/units.ts'
import { createMapping, type Mapping } from '../../stack/replay/mapping.ts'
import { type Action, createPlanner } from '../../stack/replay/plan.ts'
import { readerFor } from '../../stack/replay/recorded.ts'
import type { BenchMarket } from '../intake/orders.ts'
import type { Flow, PlannedCancel, PlannedOrder } from './flow.ts'

export interface RecordedTerms {
  readonly file: string
  readonly speed: number
  readonly seconds: number
  readonly accounts: number
}

/** An oracle price that follows a recorded trade. */
export interface PricePoint {
  /** Milliseconds after the start of the flow. */
  readonly at: number
  readonly price: Price
}

export interface RecordedFlow extends Flow {
  readonly prices: readonly PricePoint[]
}

/**
 * Delay of cancelling the rest of a recorded aggressor or filled order, because a recorded fill may precede the batch
 * that fills the order here.
 */
const LATE_CANCEL_MS = 1_500
/** Buying and selling accounts swap sides at this interval, so that positions return to flat. */
const SWAP_MS = 60_000
const LEVERAGE = 5

/** All actions of the first `seconds` at `speed`, all in the first market. */
export async function planRecorded(market: BenchMarket, terms: RecordedTerms): Promise<RecordedFlow> {
  const { speed, seconds } = terms
  const actions = await actionsOf(terms.file, speed * seconds * 1000)
  const first = actions[0]?.at ?? 0
  const oracle = priceOf(market.spec, market.oracle)
  const priced = actions.find(({ kind }) => kind === 'price') ?? actions.find(({ kind }) => kind === 'place')
  if (priced === undefined || priced.kind === 'cancel')
    throw new Error('--recorded: the file contains no price')
  const flow = new RecordedPlan(createMapping({ spec: market.spec, oracle, first: priced.price }), terms)
  for (const action of actions) {
    const at = (action.at - first) / speed
    if (at <= seconds * 1000) flow.add(action, at)
  }
  return flow
}

/** Up to `ms` of the recording's own time after its first action. */
async function actionsOf(file: string, ms: number): Promise<Action[]> {
  const stream = createReadStream(file)
  const input = file.endsWith('.gz') ? stream.pipe(createGunzip()) : stream
  const planner = createPlanner()
  const actions: Action[] = []
  let read: ReturnType<typeof readerFor> | null = null
  for await (const line of createInterface({ input })) {
    if (read === null) {
      read = readerFor(line)
      continue
    }
    actions.push(...read(line).flatMap((event) => planner.plan(event)))
    const first = actions[0]?.at ?? 0
    if ((actions.at(-1)?.at ?? 0) - first > ms) break
  }
  return actions
}

class RecordedPlan implements RecordedFlow {
  readonly orders: PlannedOrder[] = []
  readonly cancels: PlannedCancel[] = []
  readonly prices: PricePoint[] = []
  readonly #indexes = new Map<string, number>()
  readonly #mapping: Mapping
  readonly #pairs: number

  constructor(mapping: Mapping, { accounts }: RecordedTerms) {
    this.#mapping = mapping
    this.#pairs = Math.floor(accounts / 2)
  }

  add(action: Action, at: number): void {
    if (action.kind === 'price') this.prices.push({ at, price: this.#mapping.oraclePrice(action.price) })
    else if (action.kind === 'place') this.#place(action, at)
    else this.#cancel(this.#indexes.get(action.ref), action.late ? at + LATE_CANCEL_MS : at)
  }

  #place({ ref, side, price, size, take }: Extract<Action, { kind: 'place' }>, at: number): void {
    const order = this.orders.length
    const isFirstHalf = (side === 'LONG') !== (Math.floor(at / SWAP_MS) % 2 === 1)
    this.orders.push({
      ...{
        kind: take ? 'crossing' : 'resting',
        at,
        side,
        type: 'LIMIT',
        market: 0,
        trigger: 0,
        leverage: LEVERAGE,
      },
      account: 2 * (order % this.#pairs) + (isFirstHalf ? 0 : 1),
      price: this.#mapping.ticks(price) satisfies Ticks,
      steps: this.#mapping.steps(size) satisfies Steps,
    })
    if (take) this.#cancel(order, at + LATE_CANCEL_MS)
    else this.#indexes.set(ref, order)
  }

  #cancel(order: number | undefined, at: number): void {
    if (order !== undefined) this.cancels.push({ kind: 'cancel', at, order })
  }
}
