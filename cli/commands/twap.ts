/** `twap`: a quantity in equal slices over time. Its state is in a file, so that a restart continues without doubling a slice. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../../client/client.ts'
import { fromE18, toE18 } from '../../client/decimals.ts'
import { ClearbatchError } from '../../client/errors.ts'
import type { OutgoingOrder } from '../../client/order-factory.ts'
import type { Market, PlacedOrder } from '../../client/responses.ts'
import { roundQuantity } from '../../client/rounding.ts'
import type { Side } from '../../domain/orders/order.ts'
import { stateFolder, writePrivately } from '../config.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { lockState } from '../state-lock.ts'
import type { Confirming } from './order.ts'

interface Twap {
  readonly market: string
  readonly side: Side
  readonly quantity: string
  readonly slices: number
  readonly interval: number
  readonly leverage: number
  readonly 'reduce-only': boolean
  readonly state: string | undefined
}

/** A slice is written before it is sent: the same signed order is sent again after a crash, which places it once. */
interface Slice {
  readonly at: number
  readonly quantity: string
  readonly signed: Pick<OutgoingOrder, 'body' | 'hash'> | null
  readonly status: 'planned' | 'signed' | 'placed' | 'ended'
  readonly filled: string
}

interface State {
  readonly plan: Omit<Twap, 'state'>
  readonly slices: readonly Slice[]
}

/** Market orders expire this long after they are signed. A slice that the exchange did not receive until then is signed again. */
const SLICE_LIFE_MS = 60_000
const POLL_MS = 500

function planOf(market: Market, plan: Omit<Twap, 'state'>): State {
  const { slices: count, interval, quantity } = plan
  const whole = toE18(quantity)
  const each = toE18(roundQuantity(market, whole / BigInt(count)))
  if (each < BigInt(market.min_order_size_e18_raw))
    throw new CommandError(
      `each of ${count} slices would be ${fromE18(each)}; the smallest order of ${market.symbol} is ${market.min_order_size}: use fewer slices`,
      EXIT.usage,
    )
  const start = Date.now()
  const slices = Array.from({ length: count }, (_, at) => ({
    at: start + at * interval * 1000,
    quantity: fromE18(at === count - 1 ? whole - each * BigInt(count - 1) : each),
    signed: null,
    status: 'planned' as const,
    filled: '0',
  }))
  return { plan, slices }
}

/** By account and plan, so that the same command continues the same run. */
function defaultFile(context: Context, account: string, plan: object): string {
  const name = createHash('sha256')
    .update(`${context.place.url} ${account} ${JSON.stringify(plan)}`)
    .digest('hex')
  return join(stateFolder(context.env), `twap-${name.slice(0, 16)}.json`)
}

export async function twap(context: Context, args: Twap & Confirming) {
  const plan = {
    market: args.market,
    side: args.side,
    quantity: args.quantity,
    slices: args.slices,
    interval: args.interval,
    leverage: args.leverage,
    'reduce-only': args['reduce-only'],
  }
  const client = await context.signing()
  const market = await context.market(client, args.market)
  const file = args.state ?? defaultFile(context, client.account.address, plan)
  const stateOf = () => (existsSync(file) ? readState(file, plan) : planOf(market, plan))
  if (args['dry-run'])
    return stateOf().slices.map(({ at, quantity, status }) => ({
      at: new Date(at).toISOString(),
      quantity,
      status,
    }))
  const release = lockState(file)
  try {
    const state = stateOf()
    const open = state.slices.filter(({ status }) => status !== 'ended').length
    if (!args.yes)
      await context.terminal.confirm(
        `${args.side} ${args.quantity} ${market.symbol} by ${args.slices} market orders every ${args.interval} s; ${open} are left. Start?`,
      )
    return await new TwapRun(context, client, market, file, state).finish()
  } finally {
    release()
  }
}

function readState(file: string, plan: object): State {
  const state = JSON.parse(readFileSync(file, 'utf8')) as State
  if (JSON.stringify(state.plan) !== JSON.stringify(plan))
    throw new CommandError(
      `${file} is the state of another plan (${JSON.stringify(state.plan)}): name another file by --state, or delete it`,
      EXIT.usage,
    )
  return state
}

class TwapRun {
  readonly #context: Context
  readonly #client: Client
  readonly #market: Market
  readonly #file: string
  #state: State

  constructor(context: Context, client: Client, market: Market, file: string, state: State) {
    this.#context = context
    this.#client = client
    this.#market = market
    this.#file = file
    this.#state = state
  }

  async finish() {
    const { stopping, terminal } = this.#context
    this.#save()
    for (const index of this.#state.slices.keys()) {
      await this.#wait(this.#slice(index).at)
      if (stopping.aborted) break
      await this.#run(index)
      const { quantity, filled } = this.#slice(index)
      terminal.note(`slice ${index + 1} of ${this.#state.slices.length}: ${filled} of ${quantity} filled`)
    }
    if (stopping.aborted) await this.#cancelLive()
    const filled = this.#state.slices.reduce((sum, slice) => sum + toE18(slice.filled), 0n)
    const isDone = this.#state.slices.every(({ status }) => status === 'ended')
    if (isDone) rmSync(this.#file, { force: true })
    const result = {
      symbol: this.#market.symbol,
      quantity: this.#state.plan.quantity,
      filled: fromE18(filled),
    }
    if (!isDone)
      throw new CommandError(
        `stopped: ${result.filled} of ${result.quantity} filled; the same command continues`,
        EXIT.refused,
        {
          ...result,
          state: this.#file,
        },
      )
    return result
  }

  #slice(index: number): Slice {
    return this.#state.slices[index] as Slice
  }

  #update(index: number, changes: Partial<Slice>): void {
    const slices = this.#state.slices.map((slice, at) => (at === index ? { ...slice, ...changes } : slice))
    this.#state = { ...this.#state, slices }
    this.#save()
  }

  #save(): void {
    writePrivately(this.#file, `${JSON.stringify(this.#state)}\n`)
  }

  async #run(index: number): Promise<void> {
    if (this.#slice(index).status === 'ended') return
    if (this.#slice(index).status !== 'placed') await this.#place(index)
    await this.#follow(index)
  }

  async #place(index: number): Promise<void> {
    const { quantity, status } = this.#slice(index)
    if (status === 'signed' && (await this.#isKnown(index))) return
    const { side, leverage, 'reduce-only': reduceOnly } = this.#state.plan
    const order = { marketId: this.#market.market_id, side, quantity, leverage, reduceOnly }
    const { body, hash } = await this.#client.orders.sign({
      ...order,
      expiration: Math.floor((Date.now() + SLICE_LIFE_MS) / 1000),
    })
    this.#update(index, { signed: { body, hash }, status: 'signed' })
    await this.#client.orders.send({ body })
    this.#update(index, { status: 'placed' })
  }

  /** Null while the read model has not yet seen the placement. */
  async #placedOrder({ signed }: Slice): Promise<PlacedOrder | null> {
    try {
      return await this.#client.orders.getByHash((signed as NonNullable<Slice['signed']>).hash)
    } catch (error) {
      if (error instanceof ClearbatchError && error.status === 404) return null
      throw error
    }
  }

  /** A slice that was signed before a restart may have been placed: it is sent again, which places it once. False if it never can be. */
  async #isKnown(index: number): Promise<boolean> {
    const { signed } = this.#slice(index)
    if (signed === null) return false
    if ((await this.#placedOrder(this.#slice(index))) === null && !(await this.#isPlacedNow(signed)))
      return false
    this.#update(index, { status: 'placed' })
    return true
  }

  /** The exchange decides: its read model may be behind, and so may the clock of this machine. */
  async #isPlacedNow(signed: NonNullable<Slice['signed']>): Promise<boolean> {
    try {
      await this.#client.orders.send(signed)
      return true
    } catch (error) {
      if (!(error instanceof ClearbatchError)) throw error
      if (error.outcome === 'placed') return true
      if (error.outcome === 'not_placed' && error.code === 'ORDER_EXPIRED') return false
      throw error
    }
  }

  /** A market order ends within a few batches. */
  async #follow(index: number): Promise<void> {
    for (;;) {
      const order = await this.#placedOrder(this.#slice(index))
      const isEnded = order !== null && order.status !== 'OPEN' && order.status !== 'CANCEL_PENDING_FINALIZE'
      if (order !== null)
        this.#update(index, {
          filled: fromE18(BigInt(order.filled_quantity_e18_raw)),
          status: isEnded ? 'ended' : 'placed',
        })
      if (isEnded || this.#context.stopping.aborted) return
      await this.#wait(Date.now() + POLL_MS)
    }
  }

  async #cancelLive(): Promise<void> {
    for (const [index, { status, signed }] of this.#state.slices.entries()) {
      if (status !== 'placed' || signed === null) continue
      const { order } = await this.#client.orders.cancel(signed.hash, 'twap stopped')
      this.#update(index, { filled: fromE18(BigInt(order.filled_quantity_e18_raw)), status: 'ended' })
    }
  }

  async #wait(until: number): Promise<void> {
    const { stopping } = this.#context
    const pause = until - Date.now()
    if (pause <= 0 || stopping.aborted) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause)
      stopping.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true })
    })
  }
}
