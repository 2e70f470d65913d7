/** Traders of a simulated exchange: placements and cancels, alone and as commands of several items, with labels, ids and used salts, brackets and closes. */
import type {
  CancelItem,
  Item,
  NewOrder,
  OrdersCommand,
  ReplaceItem,
} from '../../../domain/exchange/decide/orders/command.ts'
import { NO_MEMORY } from '../../../domain/exchange/decide/turn/memory.ts'
import { firstStep } from '../../../domain/exchange/decide/turn/turn.ts'
import type { SignedOrder } from '../../../domain/orders/order.ts'
import type { MarketId, OrderHash, Seconds, Seq, Steps, Ticks, UserId } from '../../../domain/units.ts'
import type { AnswerOf, ExchangeAnswer, ExchangeCommand } from '../../../keeper/engine/commands.ts'
import type { Random } from '../../random.ts'
import { type Attempt, Attempts, type Send } from '../attempts.ts'
import type { Clients } from '../scenario.ts'
import type { Scheduler } from '../scheduler.ts'
import { ACCOUNT_IDS, addressOf, MARKETS, ORACLE_TICKS } from './genesis.ts'

export type TradingAttempt = Attempt<ExchangeCommand, ExchangeAnswer>

/** The database rejects the row of an order with this prefix. */
export const POISON = '0xdead'

const TURN_MS = 200

const LABELS = ['a', 'b', 'c']

/** Most orders have none. */
const FLAGS = [
  undefined,
  undefined,
  undefined,
  { timeInForce: 'gtc', postOnly: true },
  { timeInForce: 'ioc', postOnly: false, builder: 'crowd' },
] as const

/** Sequences by market that a client has seen, 0 for the accounts. */
export type Heads = ReadonlyMap<MarketId, Seq>

/** The answer to an attempt of a trader's command about orders; null before it, and for other commands. */
export const ordersAnswer = ({ command, reply }: TradingAttempt): AnswerOf<'orders'> | null =>
  (command.kind === 'orders' || command.kind === 'cancel_all') && reply !== null && 'answer' in reply
    ? (reply.answer as AnswerOf<'orders'>)
    : null

export class Crowd implements Clients<ExchangeCommand, ExchangeAnswer> {
  isQuiet = false
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #attempts: Attempts<ExchangeCommand, ExchangeAnswer>
  readonly #knownAt = new Map<ExchangeCommand, Heads>()
  #known: Heads = new Map()
  #salts = 0
  /** The last command of each account with an id: it is sent again now and then. */
  readonly #named = new Map<UserId, Omit<OrdersCommand, 'kind'>>()
  /** The last turn of each market. */
  readonly #turns = new Map<MarketId, TradingAttempt>()
  /** Orders of each account, oldest first. */
  readonly #orders = new Map<UserId, SignedOrder[]>(ACCOUNT_IDS.map((id) => [id, []]))

  constructor(scheduler: Scheduler, random: Random, send: Send<ExchangeCommand, ExchangeAnswer>) {
    this.#scheduler = scheduler
    this.#random = random
    this.#attempts = new Attempts(scheduler, random, send, (attempt) => {
      const answer = ordersAnswer(attempt)
      if (answer?.kind === 'done') {
        const { marketId, seq } = answer.readAfter
        if (seq > (this.#known.get(marketId) ?? 0)) this.#known = new Map([...this.#known, [marketId, seq]])
      }
    })
  }

  get attempts(): readonly TradingAttempt[] {
    return this.#attempts.all
  }

  /** Sequences that some client had seen when the command was sent: the answer must not be older. */
  knownAt = (command: ExchangeCommand): Heads => this.#knownAt.get(command) ?? new Map()

  start(meanPauseMs: number): void {
    for (const userId of ACCOUNT_IDS) this.#loop(userId, meanPauseMs)
    for (const { marketId } of MARKETS) this.#takeTurns(marketId)
  }

  /** The memory of a turn without an answer is lost, as with the process that would have received it. */
  #takeTurns(marketId: MarketId): void {
    const last = this.#turns.get(marketId)?.reply ?? null
    const memory = last !== null && 'answer' in last ? (last.answer as AnswerOf<'turn'>).memory : NO_MEMORY
    const command: ExchangeCommand = { kind: 'turn', turn: firstStep(marketId, memory) }
    const attempt = this.#attempts.send({ of: () => command, class: 'auction', isRepeatable: false })
    this.#turns.set(marketId, attempt)
    if (this.#random.chance(0.2)) this.#reopen(marketId)
    this.#scheduler.after(TURN_MS, () => {
      if (!this.isQuiet) this.#takeTurns(marketId)
    })
  }

  probe(): { isDone(): boolean } {
    const [first] = ACCOUNT_IDS
    const items = [{ kind: 'cancel', target: { label: 'absent' }, note: null } satisfies CancelItem]
    const id = this.#submit({ userId: first as UserId, items, isAtomic: false, request: null })
    return {
      isDone: () =>
        this.#attempts.all.some(
          ({ command, reply }) =>
            command.kind === 'orders' && command.items === id && reply !== null && 'answer' in reply,
        ),
    }
  }

  #loop(userId: UserId, meanPauseMs: number): void {
    this.#scheduler.after(-Math.log(1 - this.#random()) * meanPauseMs, () => {
      if (this.isQuiet) return
      const count = this.#random.chance(0.1) ? this.#random.between(2, 20) : 1
      for (let at = 0; at < count; at++) this.#issue(userId)
      this.#loop(userId, meanPauseMs)
    })
  }

  #issue(userId: UserId): void {
    const random = this.#random
    if (random.chance(0.03)) {
      this.#cancelAll(userId)
      return
    }
    const repeated = random.chance(0.04) ? this.#named.get(userId) : undefined
    if (repeated !== undefined) {
      this.#submit(repeated)
      return
    }
    if (random.chance(0.06)) {
      this.#submit({ userId, items: this.#bracket(userId), isAtomic: true, request: null })
      return
    }
    if (random.chance(0.04)) {
      this.#submit({ userId, items: this.#closes(userId), isAtomic: false, request: null })
      return
    }
    const isSingle = random.chance(0.7)
    const count = isSingle ? 1 : random.between(2, 6)
    const items = Array.from({ length: count }, () => this.#item(userId))
    const hasRequest = random.chance(0.3)
    const id = `r${++this.#salts}`
    const request = hasRequest ? { id, digest: id, absentUpTo: null } : null
    const command = { userId, items, isAtomic: !isSingle && random.chance(0.6), request }
    if (hasRequest) this.#named.set(userId, command)
    this.#submit(command)
  }

  #item(userId: UserId): Item {
    const random = this.#random
    const own = this.#orders.get(userId) as SignedOrder[]
    if (random.chance(0.6) || own.length === 0) return { kind: 'place', ...this.#newOrder(userId, own) }
    if (random.chance(0.4)) return this.#replacement(userId, own)
    if (random.chance(0.15)) return { kind: 'refused', refusal: 'INVALID' }
    if (random.chance(0.3)) return { kind: 'cancel', target: { label: random.pick(LABELS) }, note: null }
    const { hash } = own.at(-random.between(1, Math.min(8, own.length))) as SignedOrder
    return { kind: 'cancel', target: { hash, ended: null }, note: null }
  }

  /** Mostly of a recent order of the account, in the same market and on the same side. */
  #replacement(userId: UserId, own: SignedOrder[]): ReplaceItem {
    const random = this.#random
    const old = own.at(-random.between(1, Math.min(8, own.length))) as SignedOrder
    const { order, ...unsigned } = this.#newOrder(userId, own)
    const { marketId, side } = random.chance(0.95) ? old : order
    const signed = { ...order, marketId, side }
    own[own.length - 1] = signed
    const target = random.chance(0.3)
      ? { label: random.pick(LABELS) }
      : ({ hash: old.hash, ended: null } as const)
    return {
      kind: 'replace',
      ...unsigned,
      order: signed,
      target,
      ifFilled: random.pick(['refuse', 'reduce'] as const),
    }
  }

  #newOrder(userId: UserId, own: SignedOrder[]): NewOrder {
    const random = this.#random
    const number = ++this.#salts
    const used = random.chance(0.05) ? own.at(-1) : undefined
    const prefix = random.chance(0.003) ? POISON : '0x0000'
    const isMarket = random.chance(0.15)
    const order: SignedOrder = {
      marketId: used?.marketId ?? random.pick(MARKETS).marketId,
      maker: addressOf(userId),
      signer: addressOf(userId),
      hash: `${prefix}${number.toString(16).padStart(60, '0')}` as OrderHash,
      salt: used?.salt ?? (BigInt(number) as SignedOrder['salt']),
      side: random.chance(0.5) ? 'LONG' : 'SHORT',
      type: isMarket ? 'MARKET' : 'LIMIT',
      price: (isMarket ? 0 : ORACLE_TICKS + random.between(-30, 30)) as Ticks,
      quantity: random.between(10, 3000) as Steps,
      trigger: 0 as Ticks,
      leverage: random.pick([1, 2, 5]),
      reduceOnly: random.chance(0.05),
      expiration: 0 as Seconds,
      signature: `0x${'00'.repeat(66)}`,
    }
    own.push(order)
    const clientOrderId = random.chance(0.2) ? random.pick(LABELS) : null
    const flags = isMarket ? undefined : random.pick(FLAGS)
    return { order, clientOrderId, absentUpTo: null, ...(flags !== undefined && { flags }) }
  }

  /** An entry with its exits, or exits alone. The numbers are few, so that some are taken. */
  #bracket(userId: UserId): Item[] {
    const random = this.#random
    const own = this.#orders.get(userId) as SignedOrder[]
    const { order: entry, ...unsigned } = this.#newOrder(userId, own)
    const flags = { timeInForce: 'gtc', postOnly: false, bracket: random.between(1, 6) } as const
    const side = entry.side === 'LONG' ? 'SHORT' : 'LONG'
    const exits = (['TAKE_PROFIT_LIMIT', 'STOP_LOSS_MARKET'] as const).map((type): Item => {
      const { order, absentUpTo } = this.#newOrder(userId, own)
      const trigger = (ORACLE_TICKS + random.between(-30, 30)) as Ticks
      const price = (type === 'TAKE_PROFIT_LIMIT' ? ORACLE_TICKS + random.between(-30, 30) : 0) as Ticks
      const { marketId, quantity } = entry
      const exit = { ...order, marketId, quantity, side, type, trigger, price, reduceOnly: true } as const
      own[own.length - 1] = exit
      return { kind: 'place', order: exit, clientOrderId: null, flags, absentUpTo }
    })
    const first: Item = { ...unsigned, kind: 'place', order: { ...entry, reduceOnly: false }, flags }
    return random.chance(0.8) ? [first, ...exits] : exits
  }

  /** Two closes of one position now and then: each is signed for more than it can have. */
  #closes(userId: UserId): Item[] {
    const own = this.#orders.get(userId) as SignedOrder[]
    const { order, absentUpTo } = this.#newOrder(userId, own)
    const terms = { type: 'MARKET', price: 0 as Ticks, quantity: 3000 as Steps, reduceOnly: true } as const
    const first = { ...order, ...terms }
    own[own.length - 1] = first
    const second = {
      ...this.#newOrder(userId, own).order,
      ...terms,
      marketId: order.marketId,
      side: order.side,
    }
    own[own.length - 1] = second
    return [first, second].map((one) => ({ kind: 'place', order: one, clientOrderId: null, absentUpTo }))
  }

  /** The operator lifts a restriction after a faulty command. */
  #reopen(marketId: MarketId): void {
    const command: ExchangeCommand = { kind: 'operator', marketId, setting: { kind: 'reopen' } }
    this.#attempts.send({ of: () => ({ ...command }), class: 'chain', isRepeatable: true })
  }

  #cancelAll(userId: UserId): void {
    const marketId = this.#random.chance(0.5) ? this.#random.pick(MARKETS).marketId : null
    const command: ExchangeCommand = { kind: 'cancel_all', userId, marketId, note: null, covers: [] }
    this.#attempts.send({ of: () => ({ ...command }), class: 'cancel', isRepeatable: true })
  }

  #submit(command: Omit<OrdersCommand, 'kind'>): OrdersCommand['items'] {
    const hasPlacement = command.items.some(({ kind }) => kind === 'place' || kind === 'replace')
    this.#attempts.send({
      of: () => {
        const sent: OrdersCommand = { ...command, kind: 'orders' }
        this.#knownAt.set(sent, this.#known)
        return sent
      },
      class: hasPlacement ? 'placement' : 'cancel',
      isRepeatable: true,
    })
    return command.items
  }
}
