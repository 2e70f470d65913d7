/** What should have happened by now. */
import type { Market } from '../../../client/answers.ts'
import { priceOf } from '../../../domain/market.ts'
import { isMarketType, isTriggered } from '../../../domain/order.ts'
import type { Price } from '../../../domain/units.ts'
import { isLive, mayCross, nameOf, paired, raw, type Trader } from './laws.ts'
import type { PaperOrder } from './paper.ts'

/** Beyond this an order may be out of the band or below the margin that opening asks for. */
const NEAR = 30n

const isPlain = ({ order }: PaperOrder): boolean => !order.reduceOnly && order.leverage <= 2

function isNear({ spec, order }: PaperOrder, oracle: bigint): boolean {
  const distance = priceOf(spec, order.price) - oracle
  return (distance < 0n ? -distance : distance) * 1000n <= NEAR * oracle
}

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
  const due = live.flatMap(({ paper, mine, told }) => {
    const { order, spec } = mine
    const { mark_price_e18_raw: mark } = markets.get(spec.marketId) as Market
    const isHit = mark !== null && isTriggered(order, raw(mark) as Price, spec.tick)
    const whys = [
      told.status === 'CANCEL_PENDING_FINALIZE' && 'ends when its batch does',
      told.status === 'OPEN' && isMarketType(order.type) && 'takes part in one batch',
      order.expiration !== 0 && now > order.expiration * 1000 && 'has expired',
      mine.cancelPromised && 'is cancelled',
      paper.revoked.has(mine.signer) && 'lost its signer',
      paper.firedOver(Date.parse(told.created_at), now) !== null && 'had a dead-man switch',
      told.status === 'PENDING_TRIGGER' && isHit && 'is to be triggered',
      raw(told.settling_quantity_e18_raw) !== 0n && 'settles',
    ]
    return whys.flatMap((why) => (why === false ? [] : [`${nameOf(mine)}, ${told.status}: ${why}`]))
  })
  const crossing = live.filter(({ mine, told }) => {
    const oracle = raw(markets.get(mine.spec.marketId)?.oracle_price_e18_raw ?? null)
    return told.status === 'OPEN' && mine.order.price !== 0 && isPlain(mine) && isNear(mine, oracle)
  })
  const pairs = crossing.flatMap(({ mine }, at) =>
    crossing
      .slice(at + 1)
      .flatMap((other) => (mayCross(mine, other.mine) ? [[mine, other.mine] as const] : [])),
  )
  return [
    ...due,
    ...pairs.map(([one, other]) => `${nameOf(one)} and ${nameOf(other)} cross and do not trade`),
  ]
}
