/** The decisions of one transaction on a market's liquidations: reads what each account's case needs, and plans its step. */

import type { BatchBasis } from '../../domain/auction/action-basis.ts'
import { MAX_ORDERS_PER_TURN } from '../../domain/auction/turn-bound.ts'
import type { OpenOrder } from '../../domain/orders/open-order.ts'
import type { Order } from '../../domain/orders/order.ts'
import type { Position } from '../../domain/positions/position.ts'
import { byRank, type Counterparty, MAX_LEGS } from '../../domain/risk/deleveraging-legs.ts'
import type { ActionOutcome } from '../../domain/risk/liquidation-outcome.ts'
import {
  type LiquidationPlan,
  LiquidationPlanner,
  MAX_PENDING,
  type UnrankedCase,
} from '../../domain/risk/liquidation-plan.ts'
import type { PendingMoves } from '../../domain/risk/pending-moves.ts'
import type { RunningLiquidation } from '../../domain/risk/running-liquidation.ts'
import type { RiskPrices } from '../../domain/risk/score-bounds.ts'
import type { Address, OrderHash, Seq, UserId } from '../../domain/units.ts'
import type { MarketView } from '../auction/market-memory.ts'
import { readPendingMoves } from '../auction/pending-moves.ts'
import type { LiquidationTransaction } from './ports.ts'

export interface TurnInput {
  readonly transaction: LiquidationTransaction
  readonly view: MarketView
  readonly prices: RiskPrices
  readonly basis: BatchBasis
  readonly running: readonly RunningLiquidation[]
  readonly hashOf: (order: Order) => OrderHash
}

export class LiquidationTurn {
  readonly #input: TurnInput
  readonly #planner: LiquidationPlanner
  readonly #running: ReadonlyMap<UserId, RunningLiquidation>
  readonly #addresses = new Map<UserId, Address>()
  readonly #users = new Map<Address, UserId>()
  /** Reduce-only orders by account. */
  readonly #orders = new Map<UserId, number>()

  constructor(input: TurnInput) {
    const { transaction, view, prices, basis, running, hashOf } = input
    const { now, head, pauseEndsAt, backlog } = transaction.snapshot
    this.#input = input
    this.#running = new Map(running.map((liquidation) => [liquidation.account, liquidation]))
    this.#planner = new LiquidationPlanner({
      ...{ spec: prices.spec, asOf: basis.asOf, report: basis.report, index: prices.index },
      ...{ pauseEndsAt, at: now, head: head as Seq, standingSeq: view.standingSeq },
      ...{ queued: backlog.queued, hashOf },
    })
  }

  /** Decides on the accounts in this order, as far as the bounds of a transaction allow. */
  async run(accounts: readonly UserId[]): Promise<LiquidationPlan> {
    const { transaction, view, prices } = this.#input
    const { moves, count } = await readPendingMoves(transaction, view.positions, prices, this.#users)
    for (const [address, account] of this.#users) this.#know(account, address)
    await this.#learn(accounts)
    const orders = Map.groupBy(await transaction.liveOrders(new Set(accounts)), ({ account }) => account)
    const outcomes = await this.#outcomes(accounts)
    let free = MAX_PENDING - count
    for (const account of accounts) {
      const own = orders.get(account) ?? []
      if (this.#planner.changes + own.length > MAX_ORDERS_PER_TURN) continue
      if (this.#isTouched(account, moves)) continue
      const one = this.#caseOf(account, moves, own, outcomes.get(account) ?? null)
      const isRanked = this.#planner.needsCounterparties(one)
      // Ranking takes milliseconds: not for an action that cannot be queued.
      if (isRanked && !this.#planner.mayAct(one.running, 'deleverage', free > 0)) continue
      const ranked = isRanked ? await this.#counterparties(one.maker, one.position, moves) : []
      const counterparties = () => byRank(prices, ranked)
      const action = this.#planner.decide({ ...one, counterparties }, free > 0)
      if (action === null) continue
      moves.apply(action)
      free--
    }
    return this.#planner.plan()
  }

  /** Its position is known once the actions in the queue are mined. */
  #isTouched(account: UserId, moves: PendingMoves): boolean {
    return (
      this.#input.transaction.snapshot.touched.has(account) || moves.accounts.has(this.#addressOf(account))
    )
  }

  /** Of the accounts whose liquidation waits for a single action. */
  async #outcomes(accounts: readonly UserId[]): Promise<ReadonlyMap<UserId, ActionOutcome>> {
    const waiting = accounts.flatMap((account): [UserId, number][] => {
      const running = this.#running.get(account)
      const waits = running?.stage === 'inheriting' || running?.stage === 'deleveraging'
      return waits && running.queueNo !== null ? [[account, running.queueNo]] : []
    })
    if (waiting.length === 0) return new Map()
    const outcomes = await this.#input.transaction.outcomes(waiting.map(([, queueNo]) => queueNo))
    return new Map(waiting.map(([account, queueNo]) => [account, outcomes.get(queueNo) ?? null]))
  }

  #caseOf(
    account: UserId,
    moves: PendingMoves,
    orders: readonly OpenOrder[],
    outcome: ActionOutcome,
  ): UnrankedCase {
    const maker = this.#addressOf(account)
    const position = moves.positionOf(maker)
    const state = moves.backstop
    const address = this.#input.transaction.snapshot.backstop?.address
    const backstop = state === null || address === undefined ? null : { address, state }
    return {
      ...{ account, maker, running: this.#running.get(account) ?? null, outcome, position, orders },
      backstop: address === maker ? 'itself' : backstop,
      pool: moves.pool,
      userOf: (of) => this.#users.get(of) as UserId,
    }
  }

  /** The best counterparties of the matched positions, as the pending actions leave them. */
  async #counterparties(
    maker: Address,
    position: Position,
    moves: PendingMoves,
  ): Promise<readonly Counterparty[]> {
    const { view, prices } = this.#input
    const count = MAX_LEGS + moves.accounts.size
    const accounts = view.positions.scanner.counterparties(prices, position, count)
    await this.#learn(accounts)
    const orders = await this.#reduceOnlyOrders(accounts)
    return accounts
      .map((account): Counterparty => {
        const address = this.#addressOf(account)
        return { account: address, position: moves.positionOf(address), orders: orders.get(account) ?? 0 }
      })
      .filter(({ account }) => account !== maker && moves.mayCounter(account))
  }

  /** Read once for each account: the cases of a turn rank mostly the same ones. */
  async #reduceOnlyOrders(accounts: readonly UserId[]): Promise<ReadonlyMap<UserId, number>> {
    const unread = accounts.filter((account) => !this.#orders.has(account))
    if (unread.length > 0) {
      const counts = await this.#input.transaction.reduceOnlyOrders(unread)
      for (const account of unread) this.#orders.set(account, counts.get(account) ?? 0)
    }
    return this.#orders
  }

  async #learn(accounts: Iterable<UserId>): Promise<void> {
    const unknown = [...accounts].filter((account) => !this.#addresses.has(account))
    if (unknown.length === 0) return
    for (const [account, address] of await this.#input.transaction.addresses(unknown))
      this.#know(account, address)
  }

  #know(account: UserId, address: Address): void {
    this.#addresses.set(account, address)
    this.#users.set(address, account)
  }

  #addressOf(account: UserId): Address {
    return this.#addresses.get(account) as Address
  }
}
