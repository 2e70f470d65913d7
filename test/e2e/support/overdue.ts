/** Lists changes of live orders that are due by what traders know, but have not happened. */
import type { Market } from '../../../client/responses.ts'
import { isMarketType, isTriggered } from '../../../domain/orders/order.ts'
import type { Price } from '../../../domain/units.ts'
import { isLive, nameOf, pairedOrders, raw, type TraderState } from './checks.ts'

/** One line per order and reason. Market orders that wait while no keeper runs are included. */
export function overdue(
  traders: readonly TraderState[],
  markets: ReadonlyMap<number, Market>,
  now: number,
): string[] {
  const live = traders.flatMap((trader) =>
    pairedOrders(trader)
      .filter(([, actual]) => isLive(actual))
      .map(([sentOrder, actual]) => ({ notes: trader.notes, sentOrder, actual })),
  )
  return live.flatMap(({ notes, sentOrder, actual }) => {
    const { order, spec } = sentOrder
    const { mark_price_e18_raw: mark } = markets.get(spec.marketId) as Market
    const isHit = mark !== null && isTriggered(order, raw(mark) as Price, spec.tick)
    const firedAt = notes.firedAt(now)
    const reasons = [
      actual.status === 'CANCEL_PENDING_FINALIZE' && 'must end with its batch',
      actual.status === 'OPEN' && isMarketType(order.type) && 'must end with its first batch',
      order.expiration !== 0 && now > order.expiration * 1000 && 'has expired',
      sentOrder.cancelPromised && 'was cancelled',
      notes.revoked.has(sentOrder.signer) && 'has a revoked signer',
      firedAt !== null && Date.parse(actual.created_at) <= firedAt && 'must end by the dead-man switch',
      actual.status === 'PENDING_TRIGGER' && isHit && 'must be triggered',
      raw(actual.settling_quantity_e18_raw) !== 0n && 'is settling',
    ]
    return reasons.flatMap((reason) =>
      reason === false ? [] : [`${nameOf(sentOrder)}, ${actual.status}: ${reason}`],
    )
  })
}
