/** What should have happened by now. */
import type { Market } from '../../../client/responses.ts'
import { isMarketType, isTriggered } from '../../../domain/orders/order.ts'
import type { Price } from '../../../domain/units.ts'
import { isLive, nameOf, paired, raw, type Trader } from './laws.ts'

/** What should have happened to live orders and has not, as far as a trader can tell; the market orders of a dead keeper included. */
export function dues(
  traders: readonly Trader[],
  markets: ReadonlyMap<number, Market>,
  now: number,
): string[] {
  const live = traders.flatMap((trader) =>
    paired(trader)
      .filter(([, told]) => isLive(told))
      .map(([mine, told]) => ({ paper: trader.paper, mine, told })),
  )
  return live.flatMap(({ paper, mine, told }) => {
    const { order, spec } = mine
    const { mark_price_e18_raw: mark } = markets.get(spec.marketId) as Market
    const isHit = mark !== null && isTriggered(order, raw(mark) as Price, spec.tick)
    const firedAt = paper.firedAt(now)
    const whys = [
      told.status === 'CANCEL_PENDING_FINALIZE' && 'ends when its batch does',
      told.status === 'OPEN' && isMarketType(order.type) && 'takes part in one batch',
      order.expiration !== 0 && now > order.expiration * 1000 && 'has expired',
      mine.cancelPromised && 'is cancelled',
      paper.revoked.has(mine.signer) && 'lost its signer',
      firedAt !== null && Date.parse(told.created_at) <= firedAt && 'had a dead-man switch',
      told.status === 'PENDING_TRIGGER' && isHit && 'is to be triggered',
      raw(told.settling_quantity_e18_raw) !== 0n && 'settles',
    ]
    return whys.flatMap((why) => (why === false ? [] : [`${nameOf(mine)}, ${told.status}: ${why}`]))
  })
}
