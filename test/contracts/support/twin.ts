/** A market and its accounts at the bank in the rules of domain/ alone; predicts the outcome of each step on the chain. */

import { type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import {
  adjustLeverage,
  adjustMargin,
  type LeverageAdjustment,
  type MarginAdjustment,
} from '../../../domain/positions/adjustment.ts'
import { exposureOf, isBelow, isLiquidatable } from '../../../domain/positions/margin.ts'
import {
  closingSteps,
  FLAT,
  openingBasis,
  type Position,
  type PositionFill,
} from '../../../domain/positions/position.ts'
import { accrue, type FundingUpdate, setFunding } from '../../../domain/prices/funding.ts'
import { isPastGrace } from '../../../domain/risk/bank-pause.ts'
import {
  closeAgainst,
  compareRanks,
  isDeleverageable,
  type Ranked,
  scoreOf,
} from '../../../domain/risk/deleverage.ts'
import { type Backstop, emptied, inherit, isInheritable } from '../../../domain/risk/liquidation.ts'
import { claimDue, haircutOf, valueAt } from '../../../domain/risk/wind-down.ts'
import { settleAccount } from '../../../domain/settlement/settle-account.ts'
import { applyFreeDelta, type LedgerAccount } from '../../../domain/settlement/settlement-replay.ts'
import type {
  Address,
  FundingIndex,
  Millis,
  Price,
  Quote,
  Seconds,
  Steps,
  Ticks,
} from '../../../domain/units.ts'
import type { Verdict } from '../../../domain/verdict.ts'
import { addressOf, type FillInput } from '../../support/exchange.ts'
import {
  acceptedValue,
  type Books,
  type EndedMarket,
  emptyBooks,
  requireThat,
  StepRefused,
} from './twin-books.ts'

/** `done`, the name of a contract's error, or the reason of a failed inheritance. */
export type StepOutcome = string
export const DONE = 'done'

/** An action's `asOf` and oracle price. */
export interface Moment {
  readonly asOf: Millis
  readonly oracle: Price
}

const EMPTY: LedgerAccount = { free: 0n as Quote, pending: 0n as Quote, requestedAt: 0 as Seconds }
/** An `asOf` at which no pending withdrawal backs anything. */
const NEVER = Number.MAX_SAFE_INTEGER as Millis

export class Twin {
  readonly spec: MarketSpec
  readonly #backstop: { readonly address: Address; readonly cap: Quote } | null
  #books = emptyBooks()
  /** Of the bank's last pause. */
  pauseEndsAt = 0 as Seconds

  constructor(spec: MarketSpec, backstop: { readonly address: Address; readonly cap: Quote } | null = null) {
    this.spec = spec
    this.#backstop = backstop
  }

  // ------------------------------------------------------------------ state

  get books(): Readonly<Books> {
    return this.#books
  }

  positionOf(account: Address): Position {
    return this.#books.positions.get(account) ?? FLAT
  }

  freeOf(account: Address): bigint {
    return this.#books.accounts.get(account)?.free ?? 0n
  }

  /** Credits an account from outside the market. */
  credit(account: Address, amount: bigint): void {
    const before = this.#books.accounts.get(account) ?? EMPTY
    this.#books.accounts.set(account, { ...before, free: (before.free + amount) as Quote })
  }

  /** Opposite positions that qualify as counterparties, in the order in which they have to be listed. */
  ranked(account: Address, { asOf, oracle }: Moment): Ranked[] {
    const { positions } = this.#books
    const side = Math.sign(this.positionOf(account).size)
    return [...positions]
      .filter(([, { size }]) => size * side < 0)
      .map(([each, position]) => ({
        account: each,
        score: scoreOf(this.spec, position, this.#indexAt(asOf), oracle),
      }))
      .filter((each): each is Ranked => each.score !== null)
      .sort(compareRanks)
  }

  // ------------------------------------------------------------------ one step

  /** Applies the whole step or nothing: it runs on a copy of the books. */
  #attempt(step: (books: Books) => StepOutcome | undefined): StepOutcome {
    const before = this.#books
    const books: Books = {
      ...before,
      positions: new Map(before.positions),
      accounts: new Map(before.accounts),
      unpaid: new Map(before.unpaid),
    }
    try {
      const outcome = step(books) ?? DONE
      this.#books = books
      return outcome
    } catch (error) {
      if (error instanceof StepRefused) return error.message
      throw error
    }
  }

  #indexAt(asOf: Millis): FundingIndex {
    const { index, running, asOf: last } = this.#books
    return accrue(index, running, last, asOf)
  }

  /** An action of the market's sequence: accrues funding first. */
  #action({ asOf }: Pick<Moment, 'asOf'>, step: (books: Books) => StepOutcome | undefined): StepOutcome {
    return this.#attempt((books) => {
      requireThat(books.ended === null, 'MarketNotOpen')
      books.index = this.#indexAt(asOf)
      books.asOf = asOf
      return step(books)
    })
  }

  #pay(books: Books, account: Address, delta: bigint, asOf: Millis): void {
    const moved = applyFreeDelta(books.accounts.get(account) ?? EMPTY, delta as Quote, asOf)
    if (moved === null) throw new StepRefused('FreeBalanceInsufficient')
    books.accounts.set(account, moved)
    books.pool -= delta
  }

  // ------------------------------------------------------------------ batches

  /** A part with the test's fills, at the clearing price in ticks. */
  settle(moment: Moment, price: number, fills: readonly FillInput[]): StepOutcome {
    return this.#action(moment, (books) => {
      const paid = runsOf(fills).map((run) => this.#settleRun(books, moment, price as Ticks, run))
      // The bank call comes last: accounts in turn, then the pool.
      for (const { account, delta, fee } of paid) {
        this.#pay(books, account, delta, moment.asOf)
        books.pool -= fee
        books.fees += fee
      }
      requireThat(books.pool >= 0n, 'PoolInsufficient')
    })
  }

  #settleRun(books: Books, moment: Moment, price: Ticks, run: readonly FillInput[]) {
    const { spec } = this
    const { oracle } = moment
    const account = addressOf((run[0] as FillInput).by)
    const before = books.positions.get(account) ?? FLAT
    const isForced = run[0]?.forced !== undefined
    requireThat(!isForced || isLiquidatable(spec, before, books.index, oracle), 'NotLiquidatable')
    if (isForced) this.#requirePastGrace(before, moment, books)
    const { makerFee, takerFee } = spec
    const terms = { fundingIndex: books.index, oracle, makerFee, takerFee }
    const settle = (fills: readonly PositionFill[]) =>
      acceptedValue(settleAccount(spec, before, fills, terms))
    const applied = run.map((fill) => fillOf(spec, fill, price, oracle))
    if (isForced) requireReducing(before, applied[0] as PositionFill, settle)
    const settled = settle(applied)
    books.positions.set(account, settled.position)
    return { account, delta: settled.freeDelta, fee: settled.fee }
  }

  #requirePastGrace(position: Position, { asOf, oracle }: Moment, { index }: Books): void {
    const { equity } = exposureOf(this.spec, position, index, oracle)
    requireThat(isPastGrace(this.pauseEndsAt, asOf, equity), 'LiquidationTooSoon')
  }

  // ------------------------------------------------------------------ backstop and deleveraging

  #backstopIn(books: Books): Backstop | null {
    if (this.#backstop === null) return null
    const { address, cap } = this.#backstop
    const free = books.accounts.get(address)?.free ?? (0n as Quote)
    return { position: books.positions.get(address) ?? FLAT, cap, free }
  }

  inherit(moment: Moment, account: Address): StepOutcome {
    const { spec } = this
    return this.#action(moment, (books) => {
      requireThat(account !== this.#backstop?.address, 'BackstopItself')
      const position = books.positions.get(account) ?? FLAT
      requireThat(isInheritable(spec, position, books.index, moment.oracle), 'NotLiquidatable')
      this.#requirePastGrace(position, moment, books)
      const verdict = inherit(spec, position, this.#backstopIn(books), books.index, moment.oracle)
      // The action is consumed, and nothing moves.
      if (!verdict.ok) return verdict.refusal.code
      const { address } = this.#backstop as { address: Address }
      books.positions.set(account, emptied(position)).set(address, verdict.value.position)
      this.#pay(books, address, verdict.value.freeDelta, moment.asOf)
      requireThat(books.pool >= 0n, 'PoolInsufficient')
      return DONE
    })
  }

  deleverage(
    moment: Moment,
    account: Address,
    asked: readonly { readonly of: { readonly address: string }; readonly steps: number | bigint }[],
  ): StepOutcome {
    const { spec } = this
    return this.#action(moment, (books) => {
      const { index, positions } = books
      const { oracle } = moment
      const own = positions.get(account) ?? FLAT
      requireThat(isBelow(spec, own, index, oracle, spec.mmr), 'NotLiquidatable')
      this.#requirePastGrace(own, moment, books)
      const backstop = account === this.#backstop?.address ? 'itself' : this.#backstopIn(books)
      requireThat(isDeleverageable(spec, own, backstop, index, oracle), 'BackstopFirst')
      let position = own
      let last: Ranked | null = null
      for (const { of, steps } of asked) {
        const counterparty = addressOf(of)
        const other: Position = positions.get(counterparty) ?? FLAT
        const score = position.size * other.size < 0 ? scoreOf(spec, other, index, oracle) : null
        if (score === null) continue
        const rank: Ranked = { account: counterparty, score }
        requireThat(last === null || compareRanks(last, rank) < 0, 'CounterpartyOutOfOrder')
        last = rank
        const leg = closeAgainst(spec, position, other, Number(steps) as Steps, index, oracle)
        if (leg === null) continue
        position = leg.position
        positions.set(counterparty, leg.counterparty)
        this.#pay(books, counterparty, leg.payout, moment.asOf)
      }
      positions.set(account, position)
      requireThat(books.pool >= 0n, 'PoolInsufficient')
    })
  }

  // ------------------------------------------------------------------ funding and adjustments

  fund({ asOf, oracle }: Moment, update: Omit<FundingUpdate, 'asOf'>): StepOutcome {
    return this.#action({ asOf }, (books) => {
      const context = { running: books.running, index: books.index, oracle, sessionEnd: null }
      books.running = acceptedValue(setFunding(this.spec, { asOf, ...update }, context))
    })
  }

  adjustMargin(moment: Moment, account: Address, asked: MarginAdjustment): StepOutcome {
    return this.#adjust(moment, account, (position, terms) => adjustMargin(this.spec, position, asked, terms))
  }

  adjustLeverage(moment: Moment, account: Address, asked: LeverageAdjustment): StepOutcome {
    return this.#adjust(moment, account, (position, terms) =>
      adjustLeverage(this.spec, position, asked, terms),
    )
  }

  /** Not an action: judged at its own `asOf`, and the funding index stays unchanged. */
  #adjust(
    { asOf, oracle }: Moment,
    account: Address,
    judge: (
      position: Position,
      terms: { fundingIndex: FundingIndex; oracle: Price },
    ) => Verdict<{ position: Position; moved: Quote }, { readonly code: string }>,
  ): StepOutcome {
    return this.#attempt((books) => {
      const before = books.positions.get(account) ?? FLAT
      const { position, moved } = acceptedValue(judge(before, { fundingIndex: this.#indexAt(asOf), oracle }))
      books.positions.set(account, position)
      this.#pay(books, account, -moved, NEVER)
      requireThat(books.pool >= 0n, 'PoolInsufficient')
    })
  }

  // ------------------------------------------------------------------ wind-down

  /** Funding accrues up to the close of a market, which may be earlier than its last action. */
  end({ asOf, oracle }: Moment, closesAt: Millis = asOf): StepOutcome {
    return this.#action({ asOf: closesAt }, (books) => {
      books.ended = { price: oracle, pool: books.pool as Quote }
    })
  }

  #worth(books: Books, account: Address): Quote {
    const { price } = books.ended as EndedMarket
    return valueAt(this.spec, books.positions.get(account) ?? FLAT, books.index, price)
  }

  reportInsolvent(accounts: readonly Address[]): StepOutcome {
    return this.#attempt((books) => {
      for (const account of accounts) {
        const worth = this.#worth(books, account)
        if (worth >= 0n) continue
        books.deficit -= worth
        books.positions.set(account, emptied(books.positions.get(account) ?? FLAT))
      }
    })
  }

  cover(amount: bigint): StepOutcome {
    return this.#attempt((books) => {
      this.#pay(books, this.spec.trader, -amount, NEVER)
    })
  }

  claim(account: Address): StepOutcome {
    return this.#attempt((books) => {
      const { pool } = books.ended as EndedMarket
      books.haircut ??= haircutOf(pool, books.pool as Quote, books.deficit as Quote)
      const worth = this.#worth(books, account)
      const due = (books.unpaid.get(account) ?? 0n) + claimDue(worth, books.haircut)
      const paid = due < books.pool ? due : books.pool
      requireThat(worth > 0n || paid > 0n, 'NothingToClaim')
      if (worth > 0n) books.positions.set(account, emptied(books.positions.get(account) ?? FLAT))
      books.unpaid.set(account, due - paid)
      this.#pay(books, account, paid, NEVER)
    })
  }
}

/** The chain applies the closing steps before it reverts because the fill exceeds the position. */
function requireReducing(
  { size }: Position,
  fill: PositionFill,
  settle: (fills: readonly PositionFill[]) => unknown,
): void {
  const steps = closingSteps(size, fill.side, fill.steps)
  if (steps === fill.steps) return
  if (steps > 0) settle([{ ...fill, steps, takerSteps: steps }])
  throw new StepRefused('ReduceOnlyExceeded')
}

/** Consecutive fills of one account; a forced fill starts a new run. */
function runsOf(fills: readonly FillInput[]): FillInput[][] {
  const runs: FillInput[][] = []
  for (const fill of fills) {
    const last = runs.at(-1)
    if (last && last[0]?.by.address === fill.by.address && fill.forced === undefined) last.push(fill)
    else runs.push([fill])
  }
  return runs
}

/** Same defaults as `orderOf`: the limit is the clearing price, and the buyer is the taker. */
function fillOf(spec: MarketSpec, given: FillInput, price: Ticks, oracle: Price): PositionFill {
  const { side, fill, taker, leverage, limit } = given
  return {
    side,
    price,
    steps: fill as Steps,
    takerSteps: (taker ?? (side === 'LONG' ? fill : 0)) as Steps,
    leverage: leverage ?? 5,
    basis: openingBasis(spec, { side, limit: (limit ?? price) as Ticks }, price, oracle),
  }
}

export const atTicks = (spec: MarketSpec, ticks: number): Price => priceOf(spec, ticks as Ticks)
