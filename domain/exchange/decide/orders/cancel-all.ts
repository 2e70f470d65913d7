/** Cancels all live orders of an account, in one market or in all markets, in steps of bounded size. */
import type { Quote, Seq } from '../../../units.ts'
import { Continued, type Decider } from '../../decide.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { listedSpec } from '../../market-terms.ts'
import type { ExchangeState } from '../../state.ts'
import { balanceOf } from './balance.ts'
import { cancelOwn } from './cancel.ts'
import type {
  Bookmark,
  CancelAllCommand,
  CancelAllStep,
  Cancelled,
  Done,
  OrderFacts,
  OrdersAnswer,
} from './command.ts'
import { commandBookmark } from './decide-orders.ts'
import { factsOf } from './facts.ts'

/** Maximum orders that one step ends. */
export const MAX_ORDERS_PER_STEP = 1_000

/**
 * Decides a cancel-all. Results include orders that wait for their batch to settle: unchanged, but not cancelled yet.
 */
export const decideCancelAll: Decider<CancelAllCommand | CancelAllStep, OrdersAnswer, CancelAllStep> = (
  draft,
  inputs,
  command,
) => {
  const { state } = draft
  const { userId, marketId } = command
  if (!state.users.has(userId))
    return { kind: 'refused', refusal: { code: 'USER_NOT_FOUND', received: userId } }
  if (marketId !== null && listedSpec(state, marketId) === undefined)
    return { kind: 'refused', refusal: { code: 'MARKET_NOT_FOUND', received: marketId } }
  return takeStep(draft, inputs, command.kind === 'cancel_all' ? firstStep(state, command) : command)
}

/** Fixes the orders that the command cancels: all orders accepted by now. */
function firstStep(state: ExchangeState, command: CancelAllCommand): CancelAllStep {
  const { userId, marketId, covers } = command
  const heads = [...state.heads.rows()].sort((a, b) => a.marketId - b.marketId)
  const left = heads.filter((head) =>
    marketId === null
      ? head.marketId !== 0 && state.exposures.of(head.marketId, userId).orders > 0
      : head.marketId === marketId,
  )
  const ids = left.map((head) => head.marketId)
  const ended = covers.filter((id) => state.ended.hasAny(id, userId))
  const markets = marketId === null ? [...new Set([...ids, ...ended])].sort((a, b) => a - b) : ids
  return { ...command, kind: 'cancel_all_step', left, markets, results: [] }
}

function takeStep(
  draft: Draft,
  inputs: Inputs,
  step: CancelAllStep,
): OrdersAnswer | Continued<OrdersAnswer, CancelAllStep> {
  const { userId, note } = step
  const before = balanceOf(draft.state, userId, inputs.now)
  const { facts, left } = nextOrders(draft.state, step)
  const cancelled = facts.map((one) => cancelOwn(draft, one, note, inputs.now) as Cancelled)
  const released = cancelled.reduce((sum, one) => sum + one.released, 0n)
  const done: Omit<Done, 'readAfter'> = {
    kind: 'done',
    results: [...step.results, ...cancelled],
    balance: { ...before, reserved: (before.reserved - released) as Quote },
  }
  if (left.length === 0) {
    const spanned = { userId, marketIds: step.markets, now: inputs.now }
    return { ...done, readAfter: commandBookmark(draft, spanned) }
  }
  const readAfter = cancelled.at(-1)?.readAfter ?? (left[0] as Bookmark)
  const next = { ...step, left, results: done.results as readonly Cancelled[] }
  return new Continued<OrdersAnswer, CancelAllStep>({ ...done, readAfter }, next)
}

interface StepOrders {
  readonly facts: readonly OrderFacts[]
  /** Markets with orders that later steps reach. */
  readonly left: readonly Bookmark[]
}

function nextOrders(state: ExchangeState, { userId, left, results }: CancelAllStep): StepOrders {
  const passed = new Set<string>(results.map(({ hash }) => hash))
  const facts: OrderFacts[] = []
  for (const [at, { marketId, seq }] of left.entries()) {
    for (const order of state.orderIndex.liveOf(marketId, userId)) {
      if (order.forced || order.accepted > (seq as Seq)) continue
      const one = factsOf(state, order)
      if (passed.has(one.signature.hash)) continue
      if (facts.length === MAX_ORDERS_PER_STEP) return { facts, left: left.slice(at) }
      facts.push(one)
    }
  }
  return { facts, left: [] }
}
