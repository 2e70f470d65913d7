/** Simulates the bank and the markets by the twins of the contracts' rules. It rejects what the contracts reject. */

import type { MarketSpec } from '../domain/market/market.ts'
import { exposureOf, isLiquidatable } from '../domain/positions/margin.ts'
import type { PositionFill } from '../domain/positions/position.ts'
import { type FundingRate, type FundingUpdate, setFunding } from '../domain/prices/funding.ts'
import { isPastGrace } from '../domain/risk/bank-pause.ts'
import {
  closeAgainst,
  compareRanks,
  isDeleverageable,
  type Ranked,
  scoreOf,
} from '../domain/risk/deleverage.ts'
import { type Backstop, emptied, inherit, isInheritable } from '../domain/risk/liquidation.ts'
import { MarketPositions } from '../domain/risk/market-positions.ts'
import { settleAccount } from '../domain/settlement/settle-account.ts'
import type {
  Address,
  FundingIndex,
  HourlyFunding,
  MarketId,
  Millis,
  Price,
  Quote,
  Seconds,
  Seq,
  Steps,
  Ticks,
  UserId,
} from '../domain/units.ts'

/** The account that inherits positions in every market. */
export const BACKSTOP = 1 as UserId

export const addressOf = (account: UserId): Address =>
  `0x${account.toString(16).padStart(40, '0')}` as Address

/** Free balances and pools. Mutable. */
export class Bank {
  readonly free = new Map<UserId, bigint>()
  readonly pools = new Map<MarketId, bigint>()
  fees = 0n
  /** Time at which the last pause ends. */
  pauseEndsAt = 0 as Seconds

  freeOf(account: UserId): bigint {
    return this.free.get(account) ?? 0n
  }

  /** Moves all deltas, or none and returns the contract's error. */
  settle(market: MarketId, deltas: ReadonlyMap<UserId, bigint>, fees: bigint): string | null {
    let paid = fees
    for (const [account, delta] of deltas) {
      if (this.freeOf(account) + delta < 0n) return 'FreeBalanceInsufficient'
      paid += delta
    }
    const pool = (this.pools.get(market) ?? 0n) - paid
    if (pool < 0n) return 'PoolInsufficient'
    for (const [account, delta] of deltas) this.free.set(account, this.freeOf(account) + delta)
    this.pools.set(market, pool)
    this.fees += fees
    return null
  }
}

interface Prices {
  readonly oracle: Price
  readonly index: FundingIndex
}

/** Terms that apply to an action. */
export interface ActionMoment extends Prices {
  readonly asOf: Millis
}

/** The order's signed fields that a fill does not contain. */
export interface FilledOrder {
  readonly seq: Seq
  readonly type: 'MARKET' | 'LIMIT'
  readonly limit: Ticks
  readonly quantity: Steps
  readonly reduceOnly: boolean
  /** Steps that remain after the fill. */
  readonly remaining: Steps
  /** Wei held until the fill is mined. */
  readonly held: bigint
}

export interface PartFill extends PositionFill {
  readonly account: UserId
  readonly forced: boolean
  readonly order: FilledOrder
}

/** Number of the batch and of its part. */
export interface PartPlace {
  readonly batch: number
  readonly part: number
  readonly parts: number
}

export type ChainAction = ActionMoment &
  (
    | { readonly kind: 'part'; readonly fills: readonly PartFill[]; readonly place: PartPlace }
    | { readonly kind: 'fund'; readonly rate: HourlyFunding; readonly validUntil: Millis }
    | { readonly kind: 'inherit'; readonly account: UserId }
    | { readonly kind: 'deleverage'; readonly account: UserId; readonly legs: readonly ChainLeg[] }
  )

/** An action of the liquidation ladder. */
export type LadderAction = Extract<ChainAction, { readonly kind: 'inherit' | 'deleverage' }>

export interface ChainLeg {
  readonly account: UserId
  readonly steps: Steps
}

/** Changes by an executed action. `error`: the contract reverts, or the inheritance fails. */
export interface Execution {
  readonly error: string | null
  /** Accounts that paid without an opening fill. Only the backstop may. */
  readonly charged: readonly UserId[]
  readonly opened: readonly UserId[]
}

const failed = (error: string): Execution => ({ error, charged: [], opened: [] })
const DONE: Execution = { error: null, charged: [], opened: [] }

/** The rate before the first update. */
export const NO_RATE: FundingRate = {
  rate: 0n as HourlyFunding,
  validFrom: 0 as Millis,
  validUntil: 0 as Millis,
}

export class ChainMarket {
  readonly positions = new MarketPositions()
  readonly #spec: MarketSpec
  readonly #bank: Bank
  /** Highest notional that the backstop may inherit. */
  readonly cap: Quote
  #rate: FundingRate = NO_RATE
  /** Signed price and funding index by time. The simulated chain computes with these, not with the keeper's values. */
  readonly #prices = new Map<Millis, Prices>()

  constructor(spec: MarketSpec, bank: Bank, cap: Quote) {
    this.#spec = spec
    this.#bank = bank
    this.cap = cap
  }

  report({ asOf, oracle, index }: ActionMoment): void {
    this.#prices.set(asOf, { oracle, index })
  }

  pricesAt({ asOf }: Pick<ActionMoment, 'asOf'>): Prices {
    const prices = this.#prices.get(asOf)
    if (prices === undefined) throw new Error(`no price was reported as of ${asOf}`)
    return prices
  }

  execute(sent: ChainAction): Execution {
    const action = { ...sent, ...this.pricesAt(sent) }
    if (action.kind === 'part') return this.#settle(action, action.fills)
    if (action.kind === 'fund') return this.#fund(action)
    const { account } = action
    return action.kind === 'inherit'
      ? this.#inherit(action, account)
      : this.#deleverage(action, account, action.legs)
  }

  #fund({ asOf, oracle, index, rate, validUntil }: ActionMoment & FundingUpdate): Execution {
    const context = { running: this.#rate, index, oracle, sessionEnd: null }
    const verdict = setFunding(this.#spec, { asOf, rate, validUntil }, context)
    if (!verdict.ok) return failed(verdict.refusal.code)
    this.#rate = verdict.value
    return DONE
  }

  #backstop(): Backstop {
    const free = this.#bank.freeOf(BACKSTOP) as Quote
    return { position: this.positions.of(BACKSTOP), cap: this.cap, free }
  }

  #isPastGrace(moment: ActionMoment, account: UserId): boolean {
    const { equity } = exposureOf(this.#spec, this.positions.of(account), moment.index, moment.oracle)
    return isPastGrace(this.#bank.pauseEndsAt, moment.asOf, equity)
  }

  #settle(moment: ActionMoment, fills: readonly PartFill[]): Execution {
    const { makerFee, takerFee } = this.#spec
    const { index: fundingIndex, oracle } = moment
    const deltas = new Map<UserId, bigint>()
    const after: [UserId, ReturnType<MarketPositions['of']>][] = []
    const charged: UserId[] = []
    const opened: UserId[] = []
    let fees = 0n
    for (const [account, own] of Map.groupBy(fills, (fill) => fill.account)) {
      const before = this.positions.of(account)
      if (own.some(({ forced }) => forced)) {
        if (!isLiquidatable(this.#spec, before, fundingIndex, oracle)) return failed('NotLiquidatable')
        if (!this.#isPastGrace(moment, account)) return failed('GraceRunning')
      }
      const settled = settleAccount(this.#spec, before, own, { makerFee, takerFee, fundingIndex, oracle })
      if (!settled.ok) return failed(settled.refusal.code)
      const { freeDelta, results } = settled.value
      deltas.set(account, freeDelta)
      if (results.some((result) => result.opened > 0)) opened.push(account)
      else if (freeDelta < 0n) charged.push(account)
      fees += settled.value.fee
      after.push([account, settled.value.position])
    }
    const error = this.#bank.settle(this.#spec.marketId, deltas, fees)
    if (error !== null) return failed(error)
    for (const [account, position] of after) this.positions.set(account, position)
    return { error: null, charged, opened }
  }

  #inherit(moment: ActionMoment, account: UserId): Execution {
    const { index, oracle } = moment
    const position = this.positions.of(account)
    if (!isInheritable(this.#spec, position, index, oracle)) return failed('NotLiquidatable')
    if (!this.#isPastGrace(moment, account)) return failed('GraceRunning')
    const verdict = inherit(this.#spec, position, this.#backstop(), index, oracle)
    if (!verdict.ok) return failed(verdict.refusal.code)
    const deltas = new Map([[BACKSTOP, verdict.value.freeDelta as bigint]])
    const error = this.#bank.settle(this.#spec.marketId, deltas, 0n)
    if (error !== null) return failed(error)
    this.positions.set(account, emptied(position))
    this.positions.set(BACKSTOP, verdict.value.position)
    return DONE
  }

  #deleverage(moment: ActionMoment, account: UserId, legs: readonly ChainLeg[]): Execution {
    const { index, oracle } = moment
    const before = this.positions.of(account)
    const backstop = account === BACKSTOP ? 'itself' : this.#backstop()
    if (!isInheritable(this.#spec, before, index, oracle)) return failed('NotLiquidatable')
    if (!isDeleverageable(this.#spec, before, backstop, index, oracle)) return failed('BackstopFirst')
    if (!this.#isPastGrace(moment, account)) return failed('GraceRunning')
    const deltas = new Map<UserId, bigint>()
    const after = new Map([[account, before]])
    let last: Ranked | null = null
    for (const leg of legs) {
      const other = this.positions.of(leg.account)
      const score = scoreOf(this.#spec, other, index, oracle)
      const rank: Ranked = { account: addressOf(leg.account), score: score ?? 0n }
      if (score !== null && last !== null && compareRanks(last, rank) >= 0)
        return failed('CounterpartyOutOfOrder')
      const position = after.get(account) as typeof before
      const closed = closeAgainst(this.#spec, position, other, leg.steps, index, oracle)
      // The contract would skip the leg or close less of it, so the keeper must not send such a leg.
      if (closed === null || closed.steps !== leg.steps) return failed('LegNotAsSent')
      last = rank
      after.set(account, closed.position).set(leg.account, closed.counterparty)
      deltas.set(leg.account, closed.payout)
    }
    const error = this.#bank.settle(this.#spec.marketId, deltas, 0n)
    if (error !== null) return failed(error)
    for (const [owner, position] of after) this.positions.set(owner, position)
    return { ...DONE, charged: [...deltas].filter(([, delta]) => delta < 0n).map(([owner]) => owner) }
  }
}
