/** Closes and adjusts positions, by requests that the session key signs. */
import type { AdjustmentAttempt } from '../../client/adjustments.ts'
import { ClearbatchError, CODES } from '../../client/errors.ts'
import type { NewOrder } from '../../client/order-factory.ts'
import { closingOrders } from '../../client/positions.ts'
import type { Market, PlacedOrder, Position } from '../../client/responses.ts'
import { waitFor } from '../../client/wait-for.ts'
import { openOrders } from '../account/live-account.ts'
import { refreshAccount, requireTrader } from '../account/trader.ts'
import { quantity, toE18 } from '../base/numbers.ts'
import { toast } from '../base/toasts.ts'
import { marketById } from '../feed/markets.ts'
import { cancel, close, placeBracket, replace } from './order-actions.ts'
import { type Exits, exitKind, exitOrders } from './ticket-form.ts'

/** Closes the position, fills included that are not settled yet, or as much of it as one order of the market may. */
export async function closePosition(position: Position): Promise<void> {
  const [order] = closingOrders([position])
  const most = marketById(position.market_id)?.max_order_size_e18_raw
  if (order === undefined || most === undefined) return
  const isCapped = toE18(order.quantity) > BigInt(most)
  await close(
    isCapped ? { ...order, quantity: BigInt(most) } : order,
    isCapped ? `one order closes at most ${quantity(most)}.` : 'the position has grown.',
  )
}

/** The linked exits of the position in a market: those of its newest bracket that has no entry any more. */
export function exitsOf(marketId: number): readonly PlacedOrder[] {
  const linked = openOrders.value.filter((each) => each.market_id === marketId && each.bracket_id !== null)
  const entered = new Set(linked.filter((each) => !each.reduce_only).map((each) => each.bracket_id))
  const newest = linked.find(({ bracket_id }) => !entered.has(bracket_id))?.bracket_id
  return linked.filter(({ bracket_id }) => bracket_id === newest)
}

/** Makes the exits of the position those of the form: an exit that it has is moved or cancelled, all other exits are placed and linked with it. */
export async function setExits(market: Market, position: Position, form: Exits): Promise<void> {
  const [order] = closingOrders([position])
  if (order === undefined) return
  const against = order.side
  const wanted = exitOrders(market, against, toE18(order.quantity), order.leverage ?? 1, form)
  const present = exitsOf(market.market_id)
  for (const exit of present) {
    const next = wanted.find(({ type }) => exitKind(type) === exitKind(exit.order_type))
    if (next === undefined) await cancel(exit)
    else if (isOther(exit, next))
      await replace(exit, next, {
        doing: 'Moving the exit …',
        refused: 'The exit was not moved',
        title: 'The exit is moved',
      })
  }
  const added = wanted.filter(
    ({ type }) => !present.some(({ order_type }) => exitKind(order_type) === exitKind(type)),
  )
  if (added.length === 0) return
  const title = added.length === 2 ? 'Take profit and stop loss are set' : 'The exit is set'
  await placeBracket(added, { title, bracketId: present[0]?.bracket_id ?? undefined })
}

const isOther = (exit: PlacedOrder, { trigger, quantity: size }: NewOrder): boolean =>
  BigInt(exit.trigger_price_e18_raw) !== trigger || BigInt(exit.remaining_quantity_e18_raw) !== toE18(size)

const RECONCILE_MS = 60_000

const newestAttempt = async (marketId: number): Promise<AdjustmentAttempt | undefined> =>
  (await requireTrader().adjustments.attempts({ marketId, limit: 1 }))[0]

/** Whether the exchange may still be working on the request. */
const isOpen = (error: unknown): boolean =>
  error instanceof ClearbatchError && (error.code === 'ADJUSTMENT_PENDING' || error.outcome === 'unknown')

/** Follows the attempt that came after `before` to its end. Throws with the reason if nothing has changed. */
async function awaitAttempt(marketId: number, before: string | undefined): Promise<void> {
  const ended = await waitFor(
    () => newestAttempt(marketId).catch(() => undefined),
    (attempt) =>
      attempt !== undefined &&
      attempt.adjustment_id !== before &&
      (attempt.status === 'COMMITTED' || attempt.status === 'ABORTED'),
    { budgetMs: RECONCILE_MS, everyMs: 1_000 },
  )
  if (ended?.status === 'ABORTED') throw new Error(ended.failure_reason ?? 'the exchange has aborted it')
}

/** Shows what became of an adjustment. Returns whether it is done. */
async function adjust(what: string, marketId: number, run: () => Promise<unknown>): Promise<boolean> {
  const id = `adjust-${crypto.randomUUID()}`
  toast({ id, kind: 'pending', title: `${what} …`, text: 'Answered once it is on the chain.' })
  try {
    const before = (await newestAttempt(marketId))?.adjustment_id
    await run().catch((error: unknown) => {
      if (!isOpen(error)) throw error
      toast({ id, kind: 'pending', title: `${what}: waiting for the chain` })
      return awaitAttempt(marketId, before)
    })
    toast({ id, kind: 'good', title: `${what}: done` })
    return true
  } catch (error) {
    const isUnknown = error instanceof ClearbatchError && (isOpen(error) || error.code === CODES.timeout)
    const title = isUnknown ? `${what}: the outcome is unknown` : `${what}: nothing has changed`
    const text = isUnknown
      ? 'The exchange does not answer. The position shows the result.'
      : (error as Error).message
    toast({ id, kind: 'bad', title, text })
    return false
  } finally {
    refreshAccount()
  }
}

export const addMargin = (marketId: number, amount: string): Promise<boolean> =>
  adjust('Add margin', marketId, () => requireTrader().adjustments.addMargin(marketId, amount))

export const removeMargin = (marketId: number, amount: string): Promise<boolean> =>
  adjust('Remove margin', marketId, () => requireTrader().adjustments.removeMargin(marketId, amount))

export const changeLeverage = (marketId: number, leverage: number): Promise<boolean> =>
  adjust('Change leverage', marketId, () => requireTrader().adjustments.adjustLeverage(marketId, leverage))
