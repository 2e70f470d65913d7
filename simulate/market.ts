/** One market as the keeper runs it: book, reservations, ladder and auction of the matched state, and the queue to its contract. */

import type { BatchOutcome, MatchedBatch } from '../domain/auction/batch.ts'
import type { BatchDecision } from '../domain/auction/batch-plan.ts'
import { overdue } from '../domain/auction/candidates.ts'
import { Book, type RestingOrder } from '../domain/book/book.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../domain/market/price-protection.ts'
import { restingTotals } from '../domain/orders/admission.ts'
import type { Side } from '../domain/orders/order.ts'
import { closedSide } from '../domain/orders/position-closing.ts'
import type { RecomputedReservations } from '../domain/orders/recompute-reservations.ts'
import { reservationPerStep } from '../domain/orders/reservation.ts'
import { openingBasis } from '../domain/positions/position.ts'
import { MarketPositions } from '../domain/risk/market-positions.ts'
import type { Quote, Seconds, Seq, Steps, Ticks, UserId } from '../domain/units.ts'
import {
  type ActionMoment,
  addressOf,
  BACKSTOP,
  type Bank,
  type ChainAction,
  ChainMarket,
  type PartFill,
} from './chain.ts'
import { Liquidations } from './liquidations.ts'
import {
  checkBackstop,
  checkBatch,
  checkCosts,
  checkLiquidated,
  checkMargins,
  checkMined,
  checkOrders,
} from './market-laws.ts'
import type { Recorder } from './recorder.ts'
import type { Rules } from './rules.ts'
import type { Tally } from './tally.ts'
import type { LiquidationMarket, Sending, Turn } from './turn.ts'

export interface NewOrder {
  readonly account: UserId
  readonly side: Side
  readonly type: 'MARKET' | 'LIMIT'
  /** 0 for a market order. */
  readonly limit: Ticks
  readonly quantity: Steps
  readonly leverage: number
  readonly reduceOnly: boolean
}

/** An action on its way to the chain. */
interface Sent extends Sending {
  readonly action: ChainAction
  /** The first turn in which it is executed. */
  readonly due: number
}

export interface Accounts {
  readonly bank: Bank
  /** Reserved in all markets, settling fills included. */
  reservedOf(account: UserId): bigint
}

/** Rules that decide, and the recorder of their results. */
export interface Conduct {
  readonly rules: Rules
  readonly tally: Tally
  /** Null unless the run is repeated on the contracts. */
  readonly recorder: Recorder | null
}

export class SimulatedMarket implements LiquidationMarket {
  readonly spec: MarketSpec
  readonly book = new Book()
  readonly positions = new MarketPositions()
  readonly chain: ChainMarket
  readonly liquidations: Liquidations
  readonly tally: Tally
  readonly rules: Rules
  readonly #accounts: Accounts
  readonly #recorder: Recorder | null
  /** Signed quantities of the placed orders. */
  readonly #quantities = new Map<Seq, Steps>()
  #batch = 0
  readonly #sent: Sent[] = []
  readonly #held = new Map<UserId, bigint>()
  readonly #touched = new Map<UserId, number>()
  #seq = 0
  #standing = 0
  #deferred: ReadonlySet<UserId> = new Set()

  constructor(spec: MarketSpec, accounts: Accounts, cap: Quote, { tally, rules, recorder }: Conduct) {
    this.#recorder = recorder
    this.spec = spec
    this.#accounts = accounts
    this.tally = tally
    this.rules = rules
    this.chain = new ChainMarket(spec, accounts.bank, cap)
    this.liquidations = new Liquidations(this, cap)
  }

  // ------------------------------------------------------------------ accounts

  reservedOf(account: UserId): bigint {
    const resting = this.book.ordersOf(account).reduce((sum, order) => sum + this.#reserved(order), 0n)
    return resting + (this.#held.get(account) ?? 0n)
  }

  /** Free balance less reservations in all markets. */
  available = (account: UserId): Quote =>
    (this.#accounts.bank.freeOf(account) - this.#accounts.reservedOf(account)) as Quote

  get bank(): Bank {
    return this.#accounts.bank
  }

  /** The pool's content after execution of everything sent. */
  get pool(): Quote {
    return (this.positions.pool - this.#sent.reduce((sum, { payout }) => sum + payout, 0n)) as Quote
  }

  isTouched = (account: UserId): boolean => this.#touched.has(account)

  get isQuiet(): boolean {
    return this.#sent.length === 0
  }

  #reserved = (order: RestingOrder): bigint =>
    order.openable === 0 ? 0n : reservationPerStep(this.spec, order) * BigInt(order.openable)

  // ------------------------------------------------------------------ orders

  /** False if admission rejects the order. */
  place(order: NewOrder, { asOf, oracle, index }: ActionMoment): boolean {
    const { account, side, type, limit, quantity, leverage, reduceOnly } = order
    const own = this.book
      .ordersOf(account)
      .map((each) => ({ ...each, reserved: this.#reserved(each) as Quote }))
    const position = this.positions.of(account)
    const signed = {
      ...{
        marketId: this.spec.marketId,
        maker: addressOf(account),
        side,
        type,
        price: limit,
        quantity,
        leverage,
      },
      ...{ reduceOnly, trigger: 0 as Ticks, expiration: 0 as Seconds, salt: 0n },
    }
    const verdict = this.rules.admit(signed, {
      ...{ spec: this.spec, mode: 'open', oracle, now: asOf, position, fundingIndex: index },
      resting: restingTotals(this.spec, position.size, own),
      available: this.available(account),
    })
    if (!verdict.ok) return false
    const { openable, reservedPrice } = verdict.value
    const seq = this.nextSeq()
    this.#quantities.set(seq, quantity)
    this.book.insert({
      ...{ seq, account, side, type, limit, remaining: quantity, leverage, reduceOnly },
      ...{ forced: false, triggered: false, widenings: 0, openable, reservedPrice },
      ...{ expiration: 0 as Seconds, acceptedAt: asOf },
    })
    return true
  }

  nextSeq = (): Seq => ++this.#seq as Seq

  cancelAll(account: UserId, kept = 0 as Seq): void {
    for (const { seq } of this.book.ordersOf(account)) if (seq !== kept) this.book.remove(seq)
  }

  // ------------------------------------------------------------------ chain

  send(action: ChainAction, turn: Turn, more: Partial<Sending>): void {
    const sent = { touched: [], held: [], payout: 0n, ...more, action, due: turn.number + turn.lag }
    for (const account of sent.touched) this.#touched.set(account, (this.#touched.get(account) ?? 0) + 1)
    this.#sent.push(sent)
  }

  /** Executes what is due, in its order. */
  execute(turn: number): void {
    while (this.#sent[0] !== undefined && this.#sent[0].due <= turn) {
      const { action, touched, held } = this.#sent.shift() as Sent
      const { tally } = this
      checkLiquidated(this, action)
      const backstop = this.chain.positions.of(BACKSTOP)
      const fills = action.kind === 'part' ? action.fills : []
      const free = this.#freeOf(fills)
      const { error, charged, opened } = this.chain.execute(action)
      checkMargins(this, action, opened)
      checkCosts(this, fills, free)
      if (action.kind === 'inherit' && error === null) checkBackstop(this, action, backstop)
      this.#recorder?.executed(this, action, error)
      const payers = charged.join(', ')
      tally.check('flat-never-pays', payers === '', () => `accounts ${payers} pay for a ${action.kind}`)
      for (const [account, amount] of held) this.#held.set(account, (this.#held.get(account) ?? 0n) - amount)
      for (const account of touched) this.#release(account)
      tally.executed(action, error)
      if (action.kind === 'part' || action.kind === 'fund') continue
      this.liquidations.executed(touched)
      for (const account of touched) this.#follow(account)
    }
    if (this.isQuiet) checkMined(this)
  }

  #freeOf = (fills: readonly PartFill[]): Map<UserId, bigint> =>
    new Map(fills.map(({ account }) => [account, this.bank.freeOf(account)]))

  #release(account: UserId): void {
    const left = (this.#touched.get(account) ?? 1) - 1
    if (left === 0) this.#touched.delete(account)
    else this.#touched.set(account, left)
  }

  /** The mined position of an account that an action has moved becomes its matched one, as the indexer sets it. */
  #follow(account: UserId): void {
    const before = this.positions.of(account)
    const after = this.chain.positions.of(account)
    this.positions.set(account, after)
    const side = closedSide(before.size, after.size)
    for (const order of this.book.ordersOf(account))
      if (this.rules.endsWith(order, side)) this.book.remove(order.seq)
    const orders = this.book.ordersOf(account)
    const reserved = orders.reduce((sum, order) => sum + this.#reserved(order), 0n) as Quote
    const terms = { funds: this.#fundsOf(account), before: reserved }
    this.#rebalance(this.rules.recomputeReservations(this.spec, after.size, orders, terms))
  }

  #fundsOf = (account: UserId) => ({
    free: this.#accounts.bank.freeOf(account) as Quote,
    reserved: this.#accounts.reservedOf(account) as Quote,
  })

  #rebalance({ reservations, cancels }: RecomputedReservations): void {
    for (const { seq } of cancels) {
      this.book.remove(seq)
      this.tally.unaffordable++
    }
    for (const [seq, { openable }] of reservations) {
      const order = this.book.get(seq)
      if (order !== undefined && order.openable !== openable) this.book.replace({ ...order, openable })
    }
  }

  // ------------------------------------------------------------------ turn

  /** One step of the keeper: liquidations unless their job is stalled, then the auction. Without a fresh price neither runs. */
  step(turn: Turn, isStalled: boolean): void {
    this.chain.report(turn)
    if (!isStalled) this.liquidations.decide(turn)
    this.#auction(turn)
  }

  #auction(turn: Turn): void {
    const { asOf, oracle, index: fundingIndex } = turn
    const ended = overdue(this.book, asOf)
    const outcome = this.rules.clearAndMatch({
      ...{ spec: this.spec, book: this.book, positions: this.positions.of, fundingIndex, oracle, asOf },
      ...{ standingSeq: this.#standing as Seq, priceProtection: DEFAULT_PRICE_PROTECTION[this.spec.kind] },
      pool: this.pool,
      pauseEndsAt: this.#accounts.bank.pauseEndsAt,
      excluded: { accounts: new Set([...this.#touched.keys(), ...this.#deferred]), orders: new Set() },
    })
    checkBatch(this, outcome, turn, this.#standing)
    this.#standing = this.#seq
    this.tally.poolShort += outcome.refused.filter(({ reason }) => reason === 'POOL_SHORT').length
    this.#deferred = outcome.unresolved ?? new Set()
    if (outcome.unresolved !== null) {
      this.tally.unresolved++
      return
    }
    const decision = this.rules.decideBatch(this.spec, this.book, ended, outcome, this.#fundsOf)
    this.liquidations.batchRan(outcome, turn)
    this.#apply(decision, outcome, turn)
  }

  #apply(decision: BatchDecision, { clearing, matched }: BatchOutcome, turn: Turn): void {
    const orders = new Map(clearing.fills.map(({ seq }) => [seq, this.book.get(seq) as RestingOrder]))
    if (matched !== null) this.#sendParts(matched, orders, turn)
    for (const { seq } of decision.overdue) this.book.remove(seq)
    for (const { seq, fill, opening } of clearing.fills) this.book.reduce(seq, fill, opening)
    for (const { seq } of [...decision.cancels, ...decision.leaving]) this.book.remove(seq)
    for (const [account, position] of matched?.positions ?? []) this.positions.set(account, position)
    for (const recomputed of decision.rebalanced.values()) this.#rebalance(recomputed)
  }

  #sendParts({ clearing, parts }: MatchedBatch, orders: ReadonlyMap<Seq, RestingOrder>, turn: Turn): void {
    this.tally.batches++
    this.#batch++
    const { asOf, oracle, index } = turn
    for (const [at, part] of parts.entries()) {
      const held: [UserId, bigint][] = []
      const fills = part.fills.map((fill): PartFill => {
        const order = orders.get(fill.seq) as RestingOrder
        const { side, limit, leverage, forced, account } = order
        const amount = this.rules.heldFor(this.spec, order, fill, clearing)
        if (amount > 0n) held.push([account, amount])
        const basis = openingBasis(this.spec, { side, limit }, clearing.price, oracle)
        const steps = { steps: fill.fill, takerSteps: fill.taker }
        const quantity = this.#quantities.get(fill.seq) ?? order.remaining
        const filled = { ...order, quantity, remaining: fill.remaining, held: amount }
        return { account, forced, side, price: clearing.price, leverage, basis, order: filled, ...steps }
      })
      for (const [account, amount] of held) this.#held.set(account, (this.#held.get(account) ?? 0n) + amount)
      const place = { batch: this.#batch, part: at + 1, parts: parts.length }
      this.send({ kind: 'part', asOf, oracle, index, fills, place }, turn, { held })
    }
  }

  /** The laws of the book between two steps. */
  check(): void {
    checkOrders(this)
  }
}
