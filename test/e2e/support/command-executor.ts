/** Executes the commands of a round over HTTP, notes every request, and checks what each response alone must satisfy. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Wallet } from 'ethers'
import type { Client } from '../../../client/client.ts'
import { fromE18 } from '../../../client/decimals.ts'
import { ClearbatchError } from '../../../client/errors.ts'
import type { NewOrder } from '../../../client/order-factory.ts'
import type { BatchPlacement, Placement } from '../../../client/responses.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { isConditional, isMarketType } from '../../../domain/orders/order.ts'
import type { Stack } from '../../../stack/stack.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { waitFor } from '../../support/patience.ts'
import type { Command, Place } from './commands.ts'
import type { Prices } from './prices.ts'
import { BUDGET_MS, type SentOrder, type TraderNotes } from './trader-notes.ts'
import type { TraderSetup } from './trader-setup.ts'

/** Notional of one unit of quantity, in USDM wei. */
const UNIT = 10_000n * 10n ** 18n

/** Thousandths of the center price: no order of a run fills at this distance. */
const FAR_BELOW = -400
/** Most orders of one request. */
const MAX_BATCH_ORDERS = 50

type Crowd = Extract<Command, { readonly kind: 'crowd' }>

const expirationOf = ({ life }: Place): number => (life === 0 ? 0 : Math.floor(Date.now() / 1000) + life)

interface ExecutorOptions {
  readonly stack: Stack
  readonly specs: readonly MarketSpec[]
  readonly setups: readonly TraderSetup[]
  readonly prices: Prices
  /** No fork takes back what `work` sends. */
  readonly keepBlocks: <Result>(work: () => Promise<Result>) => Promise<Result>
  readonly count: (name: string) => void
}

export class CommandExecutor {
  readonly #stack: Stack
  readonly #specs: readonly MarketSpec[]
  readonly #setups: readonly TraderSetup[]
  readonly #prices: Prices
  readonly #keepBlocks: ExecutorOptions['keepBlocks']
  readonly #count: (name: string) => void

  constructor({ stack, specs, setups, prices, keepBlocks, count }: ExecutorOptions) {
    this.#stack = stack
    this.#specs = specs
    this.#setups = setups
    this.#prices = prices
    this.#keepBlocks = keepBlocks
    this.#count = count
  }

  #setup(by: number): TraderSetup {
    const setup = this.#setups[by]
    if (setup === undefined) throw new RangeError(`trader ${by} is not part of this run`)
    return setup
  }

  async execute(by: number, commands: readonly Command[]): Promise<string[]> {
    const problems: string[] = []
    for (const command of commands) {
      this.#count(command.kind)
      const found = await this.#executeOne(by, command)
      problems.push(...found.map((problem) => `trader ${by}, ${JSON.stringify(command)}: ${problem}`))
    }
    return problems
  }

  async #executeOne(by: number, command: Command): Promise<string[]> {
    const { notes, clients } = this.#setup(by)
    const client = clients[0] as Client
    switch (command.kind) {
      case 'place':
        return this.#place(await this.sign(by, command))
      case 'batch':
        return this.#batch(by, command.mode, command.orders)
      case 'again':
        return this.#again(by, notes.pick(command.pick))
      case 'batch_again':
        return this.#batchAgain(client, notes)
      case 'salt_again':
        return this.#saltAgain(by, notes.pick(command.pick))
      case 'cancel':
        return this.#cancel(by, notes.pick(command.pick), command.times)
      case 'cancel_batch':
        return this.#cancelBatch(by, command.picks, command.times)
      case 'cancel_all':
        return this.#cancelAll(by, command.market)
      case 'read':
        return this.#read(by, notes.pick(command.pick))
      case 'arm': {
        const { fire_at, server_time } = await client.orders.cancelAllAfter(command.seconds)
        notes.arms.push({
          fireAt: fire_at === null ? null : Date.parse(fire_at),
          at: Date.parse(server_time),
        })
        return []
      }
      case 'revoke':
        return this.#revoke(by, command.key)
      case 'pause':
        await sleep(command.ms)
        return []
      case 'crowd':
        return this.#crowd(by, command)
    }
  }

  /** Signs an order and notes it before it is sent. */
  async sign(by: number, place: Place, expiration = expirationOf(place)): Promise<SentOrder> {
    const { notes, clients, keys } = this.#setup(by)
    const spec = this.#specs.find(({ marketId }) => marketId === place.market) as MarketSpec
    const client = clients[place.key === null ? 0 : place.key + 1] as Client
    const outgoing = await client.orders.sign({ ...this.#termsOf(spec, place), expiration })
    const key = place.key === null ? undefined : keys[place.key]
    const sentOrder: SentOrder = {
      ...{ by, spec, outgoing, order: outgoing.order, hash: outgoing.hash },
      signer: (key?.address ?? notes.address).toLowerCase(),
      ...{ id: null, cancelPromised: false, ended: null },
    }
    notes.addOrder(sentOrder)
    return sentOrder
  }

  #termsOf(spec: MarketSpec, place: Place): Omit<NewOrder, 'expiration'> {
    const onTick = (thousandths: number): bigint => {
      const price = (this.#prices.priceAt(spec.marketId, thousandths) / spec.tick) * spec.tick
      const top = spec.kind === 'binary_future' ? 10n ** 18n - spec.tick : price
      return price > top ? top : price
    }
    const value = (this.#prices.center(spec.marketId) * spec.step) / 10n ** 18n
    const steps = (UNIT / value) * BigInt(place.units)
    const largest = BigInt(spec.maxQuantity)
    const { market: marketId, side, type, leverage, reduceOnly } = place
    return {
      ...{ marketId, side, type, leverage, reduceOnly },
      quantity: fromE18((steps < largest ? steps : largest) * spec.step),
      ...(isMarketType(type) ? {} : { price: fromE18(onTick(place.limit)) }),
      ...(isConditional(type) ? { trigger: fromE18(onTick(place.trigger)) } : {}),
    }
  }

  /** Sends one order and notes the response. Returns null if it is rejected; the model checks whether that was right. */
  async send(sentOrder: SentOrder): Promise<Placement | null> {
    const { notes, clients } = this.#setup(sentOrder.by)
    const sentAt = Date.now()
    const note = (answer: string, accepted: readonly string[]) =>
      notes.addAttempt({
        ...{ by: sentOrder.by, account: notes.account, mode: 'single', orders: [sentOrder] },
        ...{ sentAt, answeredAt: Date.now(), answer, accepted: new Set(accepted) },
      })
    try {
      const placement = await (clients[0] as Client).orders.send(sentOrder.outgoing)
      sentOrder.id = placement.order.order_id
      notes.addBookmark(placement.read_after)
      note('accepted', [sentOrder.hash])
      return placement
    } catch (error) {
      note(this.#codeOf(error), [])
      return null
    }
  }

  /** The code of a rejection that placed nothing, in the word of the exchange: after a lost answer the client's is `unknown`. Every other error fails the run. */
  #codeOf(error: unknown): string {
    if (!(error instanceof ClearbatchError)) throw error
    const { outcome } = error.details
    if (outcome !== 'not_placed' && outcome !== 'not_read') throw error
    this.#count(error.code)
    return error.code
  }

  async #place(sentOrder: SentOrder): Promise<string[]> {
    const placement = await this.send(sentOrder)
    if (placement === null) return []
    const { order, is_duplicate, fills } = placement
    if (fills.length > 0 && !is_duplicate) return ['the response to the placement has fills']
    return is_duplicate || order.status === firstStatus(sentOrder)
      ? []
      : [`accepted as ${order.status} ${order.status_reason}`]
  }

  async #crowd(by: number, { market, count, life }: Crowd): Promise<string[]> {
    const place: Place = {
      ...{ kind: 'place', market, side: 'LONG', type: 'LIMIT', units: 1, limit: FAR_BELOW, trigger: 0 },
      ...{ leverage: 3, reduceOnly: false, life, key: null },
    }
    const expiration = expirationOf(place)
    const problems: string[] = []
    for (let left = count; left > 0; left -= MAX_BATCH_ORDERS) {
      const places = Array<Place>(Math.min(left, MAX_BATCH_ORDERS)).fill(place)
      problems.push(...(await this.#batch(by, 'best_effort', places, expiration)))
    }
    return problems
  }

  async #batch(
    by: number,
    mode: 'atomic' | 'best_effort',
    places: readonly Place[],
    expiration?: number,
  ): Promise<string[]> {
    const { notes, clients } = this.#setup(by)
    const orders: SentOrder[] = []
    for (const place of places) orders.push(await this.sign(by, place, expiration))
    const clientRequestId = `${by}-${notes.sent.length}`
    const outgoing = orders.map((order) => order.outgoing)
    const sentAt = Date.now()
    const note = (answer: string, accepted: readonly SentOrder[]) =>
      notes.addAttempt({
        ...{ by, account: notes.account, mode, orders, sentAt, answeredAt: Date.now(), answer },
        accepted: new Set(accepted.map(({ hash }) => hash)),
      })
    try {
      const done = await (clients[0] as Client).orders.placeBatch(outgoing, { mode, clientRequestId })
      const { is_duplicate, ...answer } = done
      notes.addBookmark(answer.read_after)
      notes.batches.push({ id: clientRequestId, mode, orders, answer: JSON.stringify(answer) })
      const { problems, codes } = this.#batchResults(orders, answer.results)
      note(
        codes.join(),
        orders.filter((_, at) => codes[at] === 'accepted'),
      )
      return problems
    } catch (error) {
      note(this.#codeOf(error), [])
      return mode === 'atomic' ? [] : [`a best_effort batch is rejected: ${error}`]
    }
  }

  #batchResults(orders: readonly SentOrder[], results: BatchPlacement['results']) {
    const problems = results.length === orders.length ? [] : [`${results.length} results`]
    const codes = orders.map((sentOrder, at) => {
      const result = results[at]
      if (result === undefined || !('order' in result)) {
        const code = result?.error.details.code ?? 'no result'
        this.#count(code)
        return code
      }
      sentOrder.id = result.order.order_id
      if (result.order.status !== firstStatus(sentOrder)) problems.push(`accepted as ${result.order.status}`)
      return 'accepted'
    })
    return { problems, codes }
  }

  /** Sends a signed order again: an accepted one must return as a duplicate, a rejected one may be accepted now. */
  async #again(by: number, sentOrder: SentOrder | undefined): Promise<string[]> {
    if (sentOrder === undefined) return []
    if (sentOrder.id === null) return this.#place(sentOrder)
    const { notes, clients } = this.#setup(by)
    const since = Date.now()
    try {
      const { order, is_duplicate } = await (clients[0] as Client).orders.send(sentOrder.outgoing)
      notes.addObservation({ source: 'sent again', order, since, answeredAt: Date.now() })
      return is_duplicate && order.order_id === sentOrder.id
        ? []
        : [`sent again: ${order.order_id}, duplicate ${is_duplicate}, was ${sentOrder.id}`]
    } catch (error) {
      return [`accepted before, rejected when sent again: ${this.#codeOf(error)}`]
    }
  }

  async #batchAgain(client: Client, notes: TraderNotes): Promise<string[]> {
    const batch = notes.batches.at(-1)
    if (batch === undefined) return []
    const orders = batch.orders.map(({ outgoing }) => outgoing)
    const again = await client.orders.placeBatch(orders, { mode: batch.mode, clientRequestId: batch.id })
    const { is_duplicate, ...answer } = again
    if (!is_duplicate) return ['a batch sent again is executed again']
    return JSON.stringify(answer) === batch.answer ? [] : ['a batch sent again returns another response']
  }

  async #saltAgain(by: number, sentOrder: SentOrder | undefined): Promise<string[]> {
    if (sentOrder === undefined || sentOrder.id === null || isMarketType(sentOrder.order.type)) return []
    const { order, spec } = sentOrder
    const client = this.#setup(by).withSalt(order.salt)
    const price = fromE18(BigInt(order.price + 1) * spec.tick)
    const quantity = fromE18(BigInt(order.quantity) * spec.step)
    const other = await client.orders.sign({ marketId: spec.marketId, side: order.side, price, quantity })
    const code = await client.orders.send(other).then(
      ({ order: placed }) => `placed ${placed.order_id}`,
      (error: ClearbatchError) => error.code,
    )
    return code === 'SALT_USED' ? [] : [`another order with the salt of ${sentOrder.hash}: ${code}`]
  }

  async #read(by: number, sentOrder: SentOrder | undefined): Promise<string[]> {
    if (sentOrder === undefined || sentOrder.id === null) return []
    const { notes, clients } = this.#setup(by)
    const since = notes.bookmark(sentOrder.order.marketId)
    // An order of a batch over several markets has a bookmark of `accounts`, so the market's may be older than the order.
    if (since === undefined || Number(since.shard_seq) < Number(sentOrder.id.split('-')[1])) return []
    const order = await (clients[0] as Client).orders.get(sentOrder.id, { readAfter: since })
    notes.addObservation({ source: 'read', order, since, answeredAt: Date.now() })
    return []
  }

  async #cancel(by: number, sentOrder: SentOrder | undefined, times: number): Promise<string[]> {
    if (sentOrder === undefined || sentOrder.id === null) return []
    const { notes, clients } = this.#setup(by)
    const problems: string[] = []
    for (let time = 0; time < times; time++) {
      const since = Date.now()
      const result = await notes.trackCancel(
        (other) => other === sentOrder,
        () => (clients[0] as Client).orders.cancel(sentOrder.hash, 'cancelled by the model test'),
      )
      notes.addBookmark(result.read_after)
      problems.push(...notes.noteCancelled(sentOrder, result, since))
    }
    return problems
  }

  async #cancelBatch(by: number, picks: readonly number[], times: number): Promise<string[]> {
    const { notes, clients } = this.#setup(by)
    const picked = new Set(picks.flatMap((pick) => notes.pick(pick) ?? []))
    if (picked.size === 0) return []
    const hashes = [...picked].map(({ hash }) => hash)
    const clientRequestId = crypto.randomUUID()
    const since = Date.now()
    const problems: string[] = []
    for (let time = 0; time < times; time++) {
      const { results, is_duplicate, read_after } = await notes.trackCancel(
        (other) => picked.has(other),
        () => (clients[0] as Client).orders.cancelBatch(hashes, { clientRequestId }),
      )
      notes.addBookmark(read_after)
      if (time > 0 && !is_duplicate) problems.push('a batch of cancels sent again is executed again')
      for (const [at, sentOrder] of [...picked].entries()) {
        const result = results[at]
        // A repeated command returns the states of its first execution, so the observation starts when it was first sent.
        if (result !== undefined && 'order' in result)
          problems.push(...notes.noteCancelled(sentOrder, result, since))
        else if (sentOrder.id !== null)
          problems.push(`a sent order is not cancelled: ${JSON.stringify(result)}`)
      }
    }
    return problems
  }

  async #cancelAll(by: number, market: number | null): Promise<string[]> {
    const { notes, clients } = this.#setup(by)
    const isCovered = ({ order }: SentOrder): boolean => market === null || order.marketId === market
    const covered = notes.accepted.filter(isCovered)
    const since = Date.now()
    const { results, read_after } = await notes.trackCancel(isCovered, () =>
      (clients[0] as Client).orders.cancelAll(market === null ? {} : { marketId: market }),
    )
    notes.addBookmark(read_after)
    const problems = results.flatMap((result) => {
      // The response also names orders that a fault of the round has sent meanwhile.
      const sentOrder = notes.byHash(result.order_hash)
      return sentOrder === undefined || !isCovered(sentOrder)
        ? [`cancels ${result.order_hash}, which the trader did not send`]
        : notes.noteCancelled(sentOrder, result, since)
    })
    // Every order accepted before must end. One that is missing in the response had ended already, perhaps by an earlier attempt of this
    // command whose response was lost.
    for (const sentOrder of covered) sentOrder.cancelPromised = true
    return problems
  }

  async #revoke(by: number, at: number): Promise<string[]> {
    const { keys, notes } = this.#setup(by)
    const key = (keys[at] as Wallet).address
    if (notes.revoking.has(key.toLowerCase())) return []
    notes.revoking.add(key.toLowerCase())
    const { provider, file, db } = this.#stack
    const owner = new Wallet(file.accounts[by]?.private_key ?? '', provider)
    const manager = AccountManager__factory.connect(file.contracts.account_manager, owner)
    await this.#keepBlocks(async () => (await manager.revokeSessionKey(key)).wait())
    const read = () => db.selectFrom('session_keys').select('revoked_at').where('key', '=', key.toLowerCase())
    await waitFor(
      () => read().executeTakeFirst(),
      (row) => row?.revoked_at != null && Number(row.revoked_at) > 0,
      { budgetMs: BUDGET_MS },
    )
    notes.revoked.add(key.toLowerCase())
    return []
  }
}

const firstStatus = ({ order }: SentOrder): string => (isConditional(order.type) ? 'PENDING_TRIGGER' : 'OPEN')
