/** Decides the liquidations of one step: collects each account's case from the state, and plans its step. */

import type { BatchBasis } from '../../../auction/action-basis.ts'
import type { MarketSnapshot } from '../../../auction/market-snapshot.ts'
import { MAX_ORDERS_PER_TURN } from '../../../auction/turn-bound.ts'
import type { OpenOrder } from '../../../orders/open-order.ts'
import type { Order } from '../../../orders/order.ts'
import type { Position } from '../../../positions/position.ts'
import { byRank, type Counterparty, MAX_LEGS } from '../../../risk/deleveraging-legs.ts'
import { type ActionOutcome, actionOutcomeOf } from '../../../risk/liquidation-outcome.ts'
import {
  type LiquidationPlan,
  LiquidationPlanner,
  MAX_PENDING,
  type UnrankedCase,
} from '../../../risk/liquidation-plan.ts'
import type { PendingMoves } from '../../../risk/pending-moves.ts'
import type { RunningLiquidation } from '../../../risk/running-liquidation.ts'
import type { RiskPrices } from '../../../risk/score-bounds.ts'
import type { Address, OrderHash, Seq, UserId } from '../../../units.ts'
import type { ExchangeState } from '../../state.ts'
import { actionKey } from '../../tables/markets.ts'
import type { MarketState } from './market-state.ts'
import { pendingMovesOf } from './pending-moves.ts'

export interface CasesInput {
  readonly state: ExchangeState
  readonly market: MarketState
  readonly snapshot: MarketSnapshot
  readonly prices: RiskPrices
  readonly basis: BatchBasis
  /** Journal head at the market's previous auction. */
  readonly standingSeq: Seq
  readonly running: readonly RunningLiquidation[]
  readonly hashOf: (order: Order) => OrderHash
}

export class LiquidationCases {
  readonly #input: CasesInput
  readonly #planner: LiquidationPlanner
  readonly #running: ReadonlyMap<UserId, RunningLiquidation>

  constructor(input: CasesInput) {
    const { snapshot, prices, basis, standingSeq, running, hashOf } = input
    const { now, head, pauseEndsAt, backlog } = snapshot
    this.#input = input
    this.#running = new Map(running.map((liquidation) => [liquidation.account, liquidation]))
    this.#planner = new LiquidationPlanner({
      spec: prices.spec,
      asOf: basis.asOf,
      report: basis.report,
      index: prices.index,
      pauseEndsAt,
      at: now,
      head,
      standingSeq,
      queued: backlog.queued,
      hashOf,
    })
  }

  /** Decides on the accounts in this order, within the bounds of a step. */
  decide(accounts: readonly UserId[]): LiquidationPlan {
    const { state, market, snapshot, prices } = this.#input
    const { moves, count } = pendingMovesOf(state, market, snapshot, prices)
    const orders = Map.groupBy(market.liveOrders(accounts), ({ account }) => account)
    let free = MAX_PENDING - count
    for (const account of accounts) {
      const own = orders.get(account) ?? []
      if (this.#planner.changes + own.length > MAX_ORDERS_PER_TURN) continue
      if (this.#isTouched(account, moves)) continue
      const one = this.#caseOf(account, moves, own)
      const isRanked = this.#planner.needsCounterparties(one)
      // Ranking takes milliseconds, so it is skipped for an action that cannot be queued.
      if (isRanked && !this.#planner.mayAct(one.running, 'deleverage', free > 0)) continue
      const ranked = isRanked ? this.#counterparties(one.maker, one.position, moves) : []
      const counterparties = () => byRank(prices, ranked)
      const action = this.#planner.decide({ ...one, counterparties }, free > 0)
      if (action === null) continue
      moves.apply(action)
      free--
    }
    return this.#planner.plan()
  }

  /**
   * Whether a queued action moves the account's position, so that it is unknown until the action is mined.
   */
  #isTouched(account: UserId, moves: PendingMoves): boolean {
    const { market, snapshot } = this.#input
    return snapshot.touched.has(account) || moves.accounts.has(market.addressOf(account))
  }

  /** Outcome of the single action that the liquidation awaits; null if there is none. */
  #outcomeOf(account: UserId): ActionOutcome {
    const { state, market } = this.#input
    const { stage, queueNo = null } = this.#running.get(account) ?? {}
    if (queueNo === null || (stage !== 'inheriting' && stage !== 'deleveraging')) return null
    const action = state.actions.get(actionKey(market.marketId, queueNo))
    return action === undefined ? null : actionOutcomeOf(action)
  }

  #caseOf(account: UserId, moves: PendingMoves, orders: readonly OpenOrder[]): UnrankedCase {
    const { market, snapshot } = this.#input
    const maker = market.addressOf(account)
    const state = moves.backstop
    const address = snapshot.backstop?.address
    const backstop = state === null || address === undefined ? null : { address, state }
    return {
      account,
      maker,
      running: this.#running.get(account) ?? null,
      outcome: this.#outcomeOf(account),
      position: moves.positionOf(maker),
      orders,
      backstop: address === maker ? 'itself' : backstop,
      pool: moves.pool,
      userOf: (of) => market.userOf(of) as UserId,
    }
  }

  /** Best counterparties among the matched positions after the pending actions. */
  #counterparties(maker: Address, position: Position, moves: PendingMoves): readonly Counterparty[] {
    const { market, prices } = this.#input
    const count = MAX_LEGS + moves.accounts.size
    return market.positions.scanner
      .counterparties(prices, position, count)
      .map((account): Counterparty => {
        const address = market.addressOf(account)
        return {
          account: address,
          position: moves.positionOf(address),
          orders: market.countReduceOnly(account),
        }
      })
      .filter(({ account }) => account !== maker && moves.mayCounter(account))
  }
}
