/** The liquidations of one market: decides each step with the ladder, and follows what becomes of it. */

import type { BatchOutcome } from '../domain/auction/batch.ts'
import { exposureOf } from '../domain/positions/margin.ts'
import type { Position } from '../domain/positions/position.ts'
import { closeAgainst } from '../domain/risk/deleverage.ts'
import {
  byRank,
  type Counterparty,
  MAX_LEGS,
  type RankedLeg,
  stepsToClose,
} from '../domain/risk/deleveraging-legs.ts'
import { type LadderInput, NOT_STARTED } from '../domain/risk/ladder.ts'
import { type Backstop, emptied, inherit } from '../domain/risk/liquidation.ts'
import { MOST_WIDENINGS } from '../domain/risk/liquidation-plan.ts'
import {
  divFloor,
  maxOf,
  ONE,
  type Quote,
  type Seconds,
  type Seq,
  type Steps,
  type UserId,
} from '../domain/units.ts'
import { type ActionMoment, addressOf, BACKSTOP, type LadderAction } from './chain.ts'
import { checkStep, isSpared, type Opposite } from './ladder-laws.ts'
import { equityAt, isBelowThreshold } from './reference.ts'
import type { LiquidationMarket, Sending, Turn } from './turn.ts'

const momentOf = ({ asOf, oracle, index }: Turn): ActionMoment => ({ asOf, oracle, index })

const hasNoEquity = ({ spec, position, index, oracle }: LadderInput): boolean =>
  exposureOf(spec, position, index, oracle).equity <= 0n

interface Liquidation {
  readonly startSteps: Steps
  /** Its forced order; 0 if none was placed. */
  seq: Seq
  unfilled: number
  isUncovered: boolean
}

/** Most actions of the ladder in the queue. */
const MAX_PENDING = 20
/** Most liquidations that one turn decides. */
const MAX_DECISIONS = 1_000

export class Liquidations {
  readonly #market: LiquidationMarket
  readonly #cap: Quote
  readonly #running = new Map<UserId, Liquidation>()
  /** Positions as the actions that are not executed will leave them, and the change of the backstop's free balance by them. */
  readonly #ahead = new Map<UserId, Position>()
  #freeAhead = 0n
  #pending = 0
  #inheritsAhead = 0

  constructor(market: LiquidationMarket, cap: Quote) {
    this.#market = market
    this.#cap = cap
  }

  get running(): ReadonlySet<UserId> {
    return new Set(this.#running.keys())
  }

  /** Accounts whose deficit no step of the ladder covers. */
  get uncovered(): UserId[] {
    return [...this.#running].filter(([, { isUncovered }]) => isUncovered).map(([account]) => account)
  }

  decide(turn: Turn): void {
    const { positions, spec, rules } = this.#market
    const due = new Set(this.#running.keys())
    for (const account of rules.liquidatable(positions, { spec, ...turn })) {
      due.add(account)
      if (due.size >= MAX_DECISIONS) break
    }
    for (const account of due) if (!this.#market.isTouched(account)) this.#take(account, turn)
    this.#checkDecided(turn)
  }

  /** Every position below the threshold is being liquidated, and has no other order than its forced one. Computed without the scanner. */
  #checkDecided({ index, oracle, asOf }: Turn): void {
    const { spec, positions, bank, book, tally } = this.#market
    for (const [account, position] of positions) {
      if (this.#market.isTouched(account) || !isBelowThreshold(spec, position, { index, oracle })) continue
      if (isSpared(bank.pauseEndsAt, asOf, equityAt(spec, position, { index, oracle }))) continue
      const running = this.#running.get(account)
      tally.check('scanned', running !== undefined, () => `account ${account} is not being liquidated`)
      const others = book.ordersOf(account).filter(({ seq }) => seq !== running?.seq)
      tally.check('orders-end', others.length === 0, () => `account ${account} has other orders`)
    }
  }

  #take(account: UserId, turn: Turn): void {
    const input = this.#inputOf(account, turn)
    const { tally, rules } = this.#market
    const step = rules.nextStep(input)
    tally.decided(step.kind)
    checkStep(tally, input, step, () => this.#opposites(input.position))
    if (step.kind === 'end') this.#end(account)
    // A forced order stays in the book meanwhile; the auction leaves it out.
    if (step.kind === 'end' || step.kind === 'grace') return
    const running = this.#running.get(account) ?? this.#start(account)
    const isAction = step.kind === 'inherit' || step.kind === 'deleverage'
    const waits = isAction && this.#pending >= MAX_PENDING
    this.#market.cancelAll(account, waits || step.kind === 'rest' ? running.seq : undefined)
    if (waits) return
    // Without equity the book gets it only if no counterparty and no backstop takes it.
    const isBook = step.kind === 'force' || step.kind === 'rest'
    running.isUncovered = step.kind === 'uncovered' || (isBook && hasNoEquity(input))
    if (step.kind === 'force') this.#force(account, running, step.steps, turn)
    else if (step.kind === 'inherit') this.#inherit(account, input, turn)
    else if (step.kind === 'deleverage') this.#deleverage(account, step.legs, input, turn)
  }

  #inputOf(account: UserId, turn: Turn): LadderInput {
    const { positions, spec, bank, book } = this.#market
    const running = this.#running.get(account)
    const position = positions.of(account)
    return {
      ...{ spec, position, index: turn.index, oracle: turn.oracle, asOf: turn.asOf },
      pauseEndsAt: bank.pauseEndsAt as Seconds,
      backstop: account === BACKSTOP ? 'itself' : this.#backstop(),
      pool: this.#market.pool,
      counterparties: () => this.#counterparties(position, turn),
      progress: running
        ? { ...running, resting: book.get(running.seq)?.remaining ?? (0 as Steps) }
        : { ...NOT_STARTED, startSteps: Math.abs(position.size) as Steps },
    }
  }

  /** The position when everything sent is executed. */
  #positionOf = (account: UserId): Position => this.#ahead.get(account) ?? this.#market.positions.of(account)

  #backstop(): Backstop {
    const free = (this.#market.available(BACKSTOP) + this.#freeAhead) as Quote
    return { position: this.#positionOf(BACKSTOP), cap: this.#cap, free }
  }

  /** The backstop is none while it inherits: if that fails, its position is another. */
  #counterparties(position: Position, { index, oracle }: Turn): Iterable<Counterparty> {
    const { positions, spec } = this.#market
    const terms = { spec, index, oracle }
    const best = positions.scanner.counterparties(terms, position, MAX_LEGS + this.#ahead.size)
    const able = best.filter((account) => account !== BACKSTOP || this.#inheritsAhead === 0)
    return byRank(
      terms,
      able.map((account) => ({ account: addressOf(account), position: this.#positionOf(account) })),
    )
  }

  #opposites({ size }: Position): Opposite[] {
    const all: Opposite[] = []
    for (const account of this.#market.positions.accounts()) {
      const position = this.#positionOf(account)
      if (position.size * size >= 0 || (account === BACKSTOP && this.#inheritsAhead > 0)) continue
      all.push({ account: addressOf(account), position })
    }
    return all
  }

  #start(account: UserId): Liquidation {
    const { positions, tally } = this.#market
    const startSteps = Math.abs(positions.of(account).size) as Steps
    const started = { startSteps, seq: 0 as Seq, unfilled: 0, isUncovered: false }
    this.#running.set(account, started)
    tally.liquidations++
    return started
  }

  #end(account: UserId): void {
    const running = this.#running.get(account)
    if (running === undefined) return
    this.#market.book.remove(running.seq)
    this.#running.delete(account)
  }

  #force(account: UserId, running: Liquidation, steps: Steps, { asOf }: Turn): void {
    const { book, positions } = this.#market
    running.seq = this.#market.nextSeq()
    running.unfilled = 0
    book.insert({
      ...{
        seq: running.seq,
        account,
        side: positions.of(account).size > 0 ? 'SHORT' : 'LONG',
        type: 'MARKET',
      },
      ...{
        limit: 0 as never,
        remaining: steps,
        leverage: 1,
        reduceOnly: true,
        forced: true,
        triggered: false,
      },
      ...{
        widenings: 0,
        openable: 0 as Steps,
        reservedPrice: 0 as never,
        expiration: 0 as Seconds,
        acceptedAt: asOf,
      },
    })
  }

  #inherit(account: UserId, input: LadderInput, turn: Turn): void {
    const { spec, tally } = this.#market
    const { position } = input
    const verdict = inherit(spec, position, this.#backstop(), turn.index, turn.oracle)
    if (!verdict.ok) throw new Error(`the ladder inherits what the backstop cannot: ${verdict.refusal.code}`)
    const { freeDelta } = verdict.value
    this.#ahead.set(BACKSTOP, verdict.value.position).set(account, emptied(position))
    this.#freeAhead += freeDelta
    this.#inheritsAhead++
    tally.inherited(this.#notional(position.size, turn))
    const payout = freeDelta > 0n ? freeDelta : 0n
    this.#send({ kind: 'inherit', account, ...momentOf(turn) }, turn, {
      touched: [account, BACKSTOP],
      payout,
    })
  }

  #deleverage(account: UserId, ranked: readonly RankedLeg[], input: LadderInput, turn: Turn): void {
    const { spec, tally } = this.#market
    const { oracle, index } = turn
    const legs = ranked.map(({ counterparty, steps }) => ({ account: Number(counterparty) as UserId, steps }))
    const worth = (each: Position): bigint => divFloor(exposureOf(spec, each, index, oracle).equity, ONE)
    let [position, payout, forgone, closed] = [input.position, 0n, 0n, 0]
    for (const { account: other, steps } of legs) {
      const before = this.#positionOf(other)
      const leg = closeAgainst(spec, position, before, steps, index, oracle)
      if (leg === null) throw new Error(`the leg of account ${other} does not close`)
      forgone += worth(before) - worth(leg.counterparty) - leg.payout
      payout += leg.payout
      closed += leg.steps
      position = leg.position
      this.#ahead.set(other, leg.counterparty)
    }
    this.#ahead.set(account, position)
    const over = Math.max(0, closed - stepsToClose(input))
    const deficit = maxOf(0n, worth(position) - worth(input.position))
    const notional = this.#notional(closed, turn)
    tally.deleveraged({ notional, forgone, deficit, over, legs: legs.length })
    const touched = [account, ...legs.map((leg) => leg.account)]
    this.#send({ kind: 'deleverage', account, legs, ...momentOf(turn) }, turn, { touched, payout })
  }

  #send(action: LadderAction, turn: Turn, more: Partial<Sending>): void {
    this.#pending++
    this.#market.send(action, turn, more)
  }

  #notional = (steps: number, { oracle }: Turn): bigint =>
    (BigInt(Math.abs(steps)) * this.#market.spec.step * oracle) / ONE

  /** An action of the ladder was executed or refused. The next turn decides on the result. */
  executed(touched: readonly UserId[]): void {
    this.#pending--
    for (const account of touched) if (!this.#market.isTouched(account)) this.#ahead.delete(account)
    if (this.#market.isTouched(BACKSTOP)) return
    this.#freeAhead = 0n
    this.#inheritsAhead = 0
  }

  /** Counts the batches that left a forced order unfilled; each widens its protection. */
  batchRan({ clearing, matched }: BatchOutcome, turn: Turn): void {
    const filled = new Map(clearing.fills.map((fill) => [fill.seq, fill]))
    const { book, tally } = this.#market
    for (const [account, running] of this.#running) {
      const order = book.get(running.seq)
      if (order === undefined || this.#market.isTouched(account)) continue
      const fill = matched === null ? undefined : filled.get(running.seq)
      if (fill !== undefined && clearing.price !== null) {
        tally.forced(
          this.#market.spec,
          { side: order.side, price: clearing.price, steps: fill.fill },
          turn.oracle,
        )
        continue
      }
      running.unfilled = Math.min(MOST_WIDENINGS, running.unfilled + 1)
      const widenings = Math.min(MOST_WIDENINGS, this.#market.rules.widen(order.widenings))
      book.replace({ ...order, widenings })
      const isWidened = widenings === running.unfilled
      tally.check(
        'widened',
        isWidened,
        () => `${running.unfilled} batches have widened order ${order.seq} ${widenings} times`,
      )
    }
  }
}
