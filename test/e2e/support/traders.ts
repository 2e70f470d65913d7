/** What the traders of a run do, and whether they are answered as they may expect. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Wallet } from 'ethers'
import type { Client } from '../../../client/client.ts'
import { fromE18 } from '../../../client/decimals.ts'
import { ClearbatchError } from '../../../client/errors.ts'
import type { NewOrder } from '../../../client/order-factory.ts'
import type { BatchPlacement, PlacedOrder, Placement } from '../../../client/responses.ts'
import { waitFor } from '../../../client/wait-for.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { isConditional, isMarketType } from '../../../domain/orders/order.ts'
import type { Stack } from '../../../stack/stack.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import type { Command, Place } from './commands.ts'
import type { Desk } from './desks.ts'
import { BUDGET_MS, type Paper, type PaperOrder } from './paper.ts'
import type { Prices } from './prices.ts'

/** Of one unit of quantity. */
const UNIT = 10_000n * 10n ** 18n

interface Floor {
  readonly stack: Stack
  readonly specs: readonly MarketSpec[]
  readonly desks: readonly Desk[]
  readonly prices: Prices
  readonly count: (name: string) => void
}

export class Traders {
  readonly #stack: Stack
  readonly #specs: readonly MarketSpec[]
  readonly #desks: readonly Desk[]
  readonly #prices: Prices
  readonly #count: (name: string) => void

  constructor({ stack, specs, desks, prices, count }: Floor) {
    this.#stack = stack
    this.#specs = specs
    this.#desks = desks
    this.#prices = prices
    this.#count = count
  }

  #desk(by: number): Desk {
    const desk = this.#desks[by]
    if (desk === undefined) throw new RangeError(`there is no trader ${by}`)
    return desk
  }

  async act(by: number, commands: readonly Command[]): Promise<string[]> {
    const wrong: string[] = []
    for (const command of commands) {
      this.#count(command.kind)
      const found = await this.#take(by, command)
      wrong.push(...found.map((what) => `trader ${by}, ${JSON.stringify(command)}: ${what}`))
    }
    return wrong
  }

  async #take(by: number, command: Command): Promise<string[]> {
    const { paper, clients } = this.#desk(by)
    const client = clients[0] as Client
    switch (command.kind) {
      case 'place':
        return this.#place(await this.sign(by, command))
      case 'batch':
        return this.#batch(by, command.mode, command.orders)
      case 'again':
        return this.#again(by, paper.pick(command.pick))
      case 'batch_again':
        return this.#batchAgain(client, paper)
      case 'salt_again':
        return this.#saltAgain(by, paper.pick(command.pick))
      case 'cancel':
        return this.#cancel(by, paper.pick(command.pick), command.times)
      case 'cancel_batch':
        return this.#cancelBatch(by, command.picks, command.times)
      case 'cancel_all':
        return this.#cancelAll(by, command.market)
      case 'read':
        return this.#read(by, paper.pick(command.pick))
      case 'arm': {
        const { fire_at, server_time } = await client.orders.cancelAllAfter(command.seconds)
        paper.arms.push({
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
    }
  }

  /** Written down before it is sent. */
  async sign(by: number, place: Place): Promise<PaperOrder> {
    const { paper, clients, keys } = this.#desk(by)
    const spec = this.#specs.find(({ marketId }) => marketId === place.market) as MarketSpec
    const client = clients[place.key === null ? 0 : place.key + 1] as Client
    const outgoing = await client.orders.sign(this.#draft(spec, place))
    const key = place.key === null ? undefined : keys[place.key]
    const mine: PaperOrder = {
      ...{ by, spec, outgoing, order: outgoing.order, hash: outgoing.hash },
      signer: (key?.address ?? paper.address).toLowerCase(),
      ...{ id: null, cancelPromised: false, ended: null },
    }
    paper.note(mine)
    return mine
  }

  #draft(spec: MarketSpec, place: Place): NewOrder {
    const onTick = (thousandths: number): bigint => {
      const price = (this.#prices.away(spec.marketId, thousandths) / spec.tick) * spec.tick
      const top = spec.kind === 'binary_future' ? 10n ** 18n - spec.tick : price
      return price > top ? top : price
    }
    const value = (this.#prices.middle(spec.marketId) * spec.step) / 10n ** 18n
    const steps = (UNIT / value) * BigInt(place.units)
    const most = BigInt(spec.maxQuantity)
    const { market: marketId, side, type, leverage, reduceOnly, life } = place
    return {
      ...{ marketId, side, type, leverage, reduceOnly },
      quantity: fromE18((steps < most ? steps : most) * spec.step),
      expiration: life === 0 ? 0 : Math.floor(Date.now() / 1000) + life,
      ...(isMarketType(type) ? {} : { price: fromE18(onTick(place.limit)) }),
      ...(isConditional(type) ? { trigger: fromE18(onTick(place.trigger)) } : {}),
    }
  }

  /** Sends one order, and notes what became of it. Null where it was refused, which the model judges. */
  async send(mine: PaperOrder): Promise<Placement | null> {
    const { paper, clients } = this.#desk(mine.by)
    const sentAt = Date.now()
    const note = (answer: string, accepted: readonly string[]) =>
      paper.attempted({
        ...{ by: mine.by, account: paper.account, mode: 'single', orders: [mine] },
        ...{ sentAt, answeredAt: Date.now(), answer, accepted: new Set(accepted) },
      })
    try {
      const placement = await (clients[0] as Client).orders.send(mine.outgoing)
      mine.id = placement.order.order_id
      paper.wrote(placement.read_after)
      note('accepted', [mine.hash])
      return placement
    } catch (error) {
      note(this.#codeOf(error), [])
      return null
    }
  }

  /** Nothing but a refusal that placed nothing is an answer. */
  #codeOf(error: unknown): string {
    if (!(error instanceof ClearbatchError) || error.outcome !== 'not_placed') throw error
    this.#count(error.code)
    return error.code
  }

  async #place(mine: PaperOrder): Promise<string[]> {
    const placement = await this.send(mine)
    if (placement === null) return []
    const { order, is_duplicate, fills } = placement
    if (fills.length > 0 && !is_duplicate) return ['has fills at its placement']
    return is_duplicate || order.status === firstStatus(mine)
      ? []
      : [`accepted as ${order.status} ${order.status_reason}`]
  }

  async #batch(by: number, mode: 'atomic' | 'best_effort', places: readonly Place[]): Promise<string[]> {
    const { paper, clients } = this.#desk(by)
    const orders: PaperOrder[] = []
    for (const place of places) orders.push(await this.sign(by, place))
    const clientRequestId = `${by}-${paper.sent.length}`
    const outgoing = orders.map((order) => order.outgoing)
    const sentAt = Date.now()
    const note = (answer: string, accepted: readonly PaperOrder[]) =>
      paper.attempted({
        ...{ by, account: paper.account, mode, orders, sentAt, answeredAt: Date.now(), answer },
        accepted: new Set(accepted.map(({ hash }) => hash)),
      })
    try {
      const done = await (clients[0] as Client).orders.placeBatch(outgoing, { mode, clientRequestId })
      const { is_duplicate, ...answer } = done
      paper.wrote(answer.read_after)
      paper.batches.push({ id: clientRequestId, mode, orders, answer: JSON.stringify(answer) })
      const { wrong, codes } = this.#batchResults(orders, answer.results)
      note(
        codes.join(),
        orders.filter((_, at) => codes[at] === 'accepted'),
      )
      return wrong
    } catch (error) {
      note(this.#codeOf(error), [])
      return mode === 'atomic' ? [] : [`a best_effort batch is refused: ${error}`]
    }
  }

  #batchResults(orders: readonly PaperOrder[], results: BatchPlacement['results']) {
    const wrong = results.length === orders.length ? [] : [`${results.length} results`]
    const codes = orders.map((mine, at) => {
      const result = results[at]
      if (result === undefined || !('order' in result)) {
        const code = result?.error.details.code ?? 'nothing'
        this.#count(code)
        return code
      }
      mine.id = result.order.order_id
      if (result.order.status !== firstStatus(mine)) wrong.push(`accepted as ${result.order.status}`)
      return 'accepted'
    })
    return { wrong, codes }
  }

  /** The order as it was accepted; what was refused then may be taken now. */
  async #again(by: number, mine: PaperOrder | undefined): Promise<string[]> {
    if (mine === undefined) return []
    if (mine.id === null) return this.#place(mine)
    const { paper, clients } = this.#desk(by)
    const since = Date.now()
    try {
      const { order, is_duplicate } = await (clients[0] as Client).orders.send(mine.outgoing)
      paper.saw({ what: 'sent again', told: order, since, answeredAt: Date.now() })
      return is_duplicate && order.order_id === mine.id
        ? []
        : [`sent again: ${order.order_id}, duplicate ${is_duplicate}, was ${mine.id}`]
    } catch (error) {
      return [`accepted before, now ${this.#codeOf(error)}`]
    }
  }

  async #batchAgain(client: Client, paper: Paper): Promise<string[]> {
    const batch = paper.batches.at(-1)
    if (batch === undefined) return []
    const orders = batch.orders.map(({ outgoing }) => outgoing)
    const again = await client.orders.placeBatch(orders, { mode: batch.mode, clientRequestId: batch.id })
    const { is_duplicate, ...answer } = again
    if (!is_duplicate) return ['a batch sent again is done again']
    return JSON.stringify(answer) === batch.answer ? [] : ['a batch sent again has another answer']
  }

  async #saltAgain(by: number, mine: PaperOrder | undefined): Promise<string[]> {
    if (mine === undefined || mine.id === null || isMarketType(mine.order.type)) return []
    const { salts, clients } = this.#desk(by)
    salts.repeat = mine.order.salt
    const client = clients[0] as Client
    const { order, spec } = mine
    const price = fromE18(BigInt(order.price + 1) * spec.tick)
    const quantity = fromE18(BigInt(order.quantity) * spec.step)
    const other = await client.orders.sign({ marketId: spec.marketId, side: order.side, price, quantity })
    const code = await client.orders.send(other).then(
      ({ order: placed }) => `placed ${placed.order_id}`,
      (error: ClearbatchError) => error.code,
    )
    return code === 'SALT_USED' ? [] : [`the salt of ${mine.hash} again: ${code}`]
  }

  async #read(by: number, mine: PaperOrder | undefined): Promise<string[]> {
    if (mine === undefined || mine.id === null) return []
    const { paper, clients } = this.#desk(by)
    const since = paper.bookmark(mine.order.marketId)
    if (since === undefined) return []
    const told = await (clients[0] as Client).orders.get(mine.id, { readAfter: since })
    paper.saw({ what: 'read', told, since, answeredAt: Date.now() })
    return []
  }

  async #cancel(by: number, mine: PaperOrder | undefined, times: number): Promise<string[]> {
    if (mine === undefined || mine.id === null) return []
    const { paper, clients } = this.#desk(by)
    const wrong: string[] = []
    for (let time = 0; time < times; time++) {
      const since = Date.now()
      const result = await paper.cancelling(
        (other) => other === mine,
        () => (clients[0] as Client).orders.cancel(mine.hash, 'the model says so'),
      )
      paper.wrote(result.read_after)
      wrong.push(...cancelledAs(paper, mine, result, since))
    }
    return wrong
  }

  async #cancelBatch(by: number, picks: readonly number[], times: number): Promise<string[]> {
    const { paper, clients } = this.#desk(by)
    const picked = new Set(picks.flatMap((pick) => paper.pick(pick) ?? []))
    if (picked.size === 0) return []
    const hashes = [...picked].map(({ hash }) => hash)
    const clientRequestId = crypto.randomUUID()
    const since = Date.now()
    const wrong: string[] = []
    for (let time = 0; time < times; time++) {
      const { results, is_duplicate, read_after } = await paper.cancelling(
        (other) => picked.has(other),
        () => (clients[0] as Client).orders.cancelBatch(hashes, { clientRequestId }),
      )
      paper.wrote(read_after)
      if (time > 0 && !is_duplicate) wrong.push('a batch of cancels sent again is done again')
      for (const [at, mine] of [...picked].entries()) {
        const result = results[at]
        // Sent again, it tells what it told, and that was so since it was sent first.
        if (result !== undefined && 'order' in result) wrong.push(...cancelledAs(paper, mine, result, since))
        else if (mine.id !== null) wrong.push(`cannot be cancelled: ${JSON.stringify(result)}`)
      }
    }
    return wrong
  }

  async #cancelAll(by: number, market: number | null): Promise<string[]> {
    const { paper, clients } = this.#desk(by)
    const isCovered = ({ order }: PaperOrder): boolean => market === null || order.marketId === market
    const covered = paper.accepted.filter(isCovered)
    const since = Date.now()
    const { results, read_after } = await paper.cancelling(isCovered, () =>
      (clients[0] as Client).orders.cancelAll(market === null ? {} : { marketId: market }),
    )
    paper.wrote(read_after)
    const wrong = results.flatMap((result) => {
      const mine = covered.find(({ hash }) => hash === result.order_hash)
      return mine === undefined
        ? [`cancels ${result.order_hash}, which is not there`]
        : cancelledAs(paper, mine, result, since)
    })
    // Nothing that was accepted before stays: what is not in the answer had ended, perhaps by this very command, whose answer was lost.
    for (const mine of covered) mine.cancelPromised = true
    return wrong
  }

  async #revoke(by: number, at: number): Promise<string[]> {
    const { keys, paper } = this.#desk(by)
    const key = (keys[at] as Wallet).address
    if (paper.revoking.has(key.toLowerCase())) return []
    paper.revoking.add(key.toLowerCase())
    const { provider, file, db } = this.#stack
    const owner = new Wallet(file.accounts[by]?.private_key ?? '', provider)
    const manager = AccountManager__factory.connect(file.contracts.account_manager, owner)
    await (await manager.revokeSessionKey(key)).wait()
    const read = () => db.selectFrom('session_keys').select('revoked_at').where('key', '=', key.toLowerCase())
    await waitFor(
      () => read().executeTakeFirst(),
      (row) => row?.revoked_at != null && Number(row.revoked_at) > 0,
      { budgetMs: BUDGET_MS },
    )
    paper.revoked.add(key.toLowerCase())
    return []
  }
}

const firstStatus = ({ order }: PaperOrder): string =>
  isConditional(order.type) ? 'PENDING_TRIGGER' : 'OPEN'

/** What it is then, `Sightings` judges: it is not live any more. Told cancelled is what has ended so, or will. */
function cancelledAs(
  paper: Paper,
  mine: PaperOrder,
  { order: told, cancelled }: { readonly order: PlacedOrder; readonly cancelled: boolean },
  since: number,
): string[] {
  mine.id ??= told.order_id
  mine.cancelPromised = true
  paper.saw({ what: 'cancel', told, since, answeredAt: Date.now() })
  if (told.order_hash !== mine.hash) return [`asked for ${mine.hash}, answered for ${told.order_hash}`]
  const isOut = told.status === 'CANCELLED' || told.status === 'CANCEL_PENDING_FINALIZE'
  return cancelled === isOut ? [] : [`cancelled ${cancelled} with status ${told.status}`]
}
