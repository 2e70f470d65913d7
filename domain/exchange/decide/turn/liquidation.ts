/**
 * Takes the next step of a market's liquidations, before its auction.
 * Both use the same report and time, so that a forced order joins the next batch.
 */
import { actionBasis, type BatchBasis } from '../../../auction/action-basis.ts'
import { MAX_ORDERS_PER_TURN } from '../../../auction/turn-bound.ts'
import type { Order } from '../../../orders/order.ts'
import { chooseCases } from '../../../risk/liquidation-cases.ts'
import { dueAccounts, isClosedMarket, riskPricesOf } from '../../../risk/liquidation-due.ts'
import { endedPlan, type LiquidationPlan } from '../../../risk/liquidation-plan.ts'
import type { RunningLiquidation } from '../../../risk/running-liquidation.ts'
import type { RiskPrices } from '../../../risk/score-bounds.ts'
import type { MarketId, OrderHash, UserId } from '../../../units.ts'
import { keyOfLiquidation } from '../../tables/chain.ts'
import type { TurnContext } from './context.ts'
import { LiquidationCases } from './liquidation-cases.ts'
import type { TurnMemory } from './memory.ts'
import { queueSingle } from './queue.ts'

/** Digest that a trader would sign for an order of the market; it identifies a forced order. */
export type HashOrder = (order: Order, marketId: MarketId) => OrderHash

export interface LiquidationStep {
  readonly memory: TurnMemory
  /** Reasons of failed single actions, as in their rows. */
  readonly failures: readonly string[]
  /** Number of queued single actions. */
  readonly actions: number
}

const UNCHANGED = { failures: [], actions: 0 }

/**
 * Updates the market's liquidations. They pause while settlement is behind or the contract would accept no action:
 * stale oracle price, no node, or market halted or closed.
 */
export function updateLiquidations(
  context: TurnContext,
  memory: TurnMemory,
  hashOrder: HashOrder,
): LiquidationStep {
  const { listed, snapshot, market, inputs } = context
  const limits = { pace: memory.pace, rules: inputs.reportRules(context.marketId) }
  const basis = actionBasis(listed, limits, snapshot, inputs.headTime)
  const runs = market.live.liquidating.size > 0
  if (runs && isClosedMarket(listed, snapshot)) {
    const accounts = [...market.live.liquidating.keys()].slice(0, MAX_ORDERS_PER_TURN)
    return write(context, memory, endedPlan(runningOf(context, accounts), snapshot.now))
  }
  if (basis === null) return { memory, ...UNCHANGED }
  const prices = riskPricesOf(basis, snapshot)
  const terms = { prices, snapshot, asOf: basis.asOf }
  const forced = market.live.forcedAccounts()
  if (!runs && forced.length === 0 && dueAccounts(market.positions, terms).next().done === true)
    return { memory, ...UNCHANGED }
  const chosen = chooseCases({
    running: market.live.liquidating,
    last: memory.lastLiquidation,
    forced,
    due: dueAccounts(market.positions, terms),
    ordersOf: (account) => market.live.ordersOf(account).length,
  })
  const after = { ...memory, lastLiquidation: chosen.last }
  const plan = planCases(context, { basis, prices, memory, hashOrder }, chosen.accounts)
  return write(context, after, plan)
}

interface PlanInput {
  readonly basis: BatchBasis
  readonly prices: RiskPrices
  readonly memory: TurnMemory
  readonly hashOrder: HashOrder
}

function planCases(
  context: TurnContext,
  { basis, prices, memory, hashOrder }: PlanInput,
  accounts: readonly UserId[],
): LiquidationPlan {
  const { state, market, snapshot, marketId } = context
  const cases = new LiquidationCases({
    state,
    market,
    snapshot,
    prices,
    basis,
    standingSeq: memory.standingSeq ?? snapshot.lastBatchHead,
    running: runningOf(context, accounts),
    hashOf: (order) => hashOrder(order, marketId),
  })
  return cases.decide(accounts)
}

/** Running liquidations of the accounts, by number. */
const runningOf = (
  { state, marketId }: TurnContext,
  accounts: readonly UserId[],
): readonly RunningLiquidation[] =>
  accounts
    .flatMap((account) => state.liquidations.get(keyOfLiquidation(marketId, account)) ?? [])
    .map(({ marketId: _, ...running }) => running)
    .sort((a, b) => a.number - b.number)

/** The plan numbers its rows from the head on, so its rows must be written first. */
function write(
  context: TurnContext,
  memory: TurnMemory,
  { rows, actions, running }: LiquidationPlan,
): LiquidationStep {
  context.write(...rows)
  for (const action of actions) queueSingle(context, action)
  context.write(...running.map((one) => ({ kind: 'liquidation_progressed' as const, running: one })))
  const failures = rows.flatMap((row) =>
    row.kind === 'liquidation_changed' && row.step === 'failed' ? [row.reason] : [],
  )
  return { memory, failures, actions: actions.length }
}
