/** Closes and adjusts positions, by requests that the session key signs. */
import type { AdjustmentAttempt } from '../../client/adjustments.ts'
import { ClearbatchError, CODES } from '../../client/errors.ts'
import type { Position } from '../../client/responses.ts'
import { waitFor } from '../../client/wait-for.ts'
import { refreshAccount, requireTrader } from '../account/trader.ts'
import { toast } from '../base/toasts.ts'
import { place } from './order-actions.ts'

/** A market order against the position, which can only reduce it. */
export async function closePosition({ market_id, side, size_e18_raw, leverage }: Position): Promise<void> {
  if (side === null) return
  const size = BigInt(size_e18_raw)
  await place({
    marketId: market_id,
    side: side === 'LONG' ? 'SHORT' : 'LONG',
    type: 'MARKET',
    quantity: size < 0n ? -size : size,
    leverage,
    reduceOnly: true,
  })
}

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
