/** What each order gets, from its pairs and its account's position. */
import type { RestingOrder } from './book.ts'
import type { Fill, Pair } from './clearing.ts'
import { type Tally, tally } from './pairing.ts'
import type { Participant } from './participants.ts'
import { minOf, type Steps } from './units.ts'

/**
 * By account, within an account in tranche order. An account's fills reduce its position in that order until it is flat; they are
 * all on one side, since self-trades are gone.
 */
export function fillsOf(participants: readonly Participant[], pairs: readonly Pair[]): Fill[] {
  const tallies = tally(pairs)
  const fills: Fill[] = []
  for (const { standing, orders } of participants) {
    let capacity = Math.abs(standing.size) as Steps
    for (const { order } of orders) {
      const share = tallies.get(order.seq)
      if (share === undefined) continue
      const reducing =
        order.side === standing.reducingSide
          ? minOf((share.taker + share.maker) as Steps, capacity)
          : (0 as Steps)
      capacity = (capacity - reducing) as Steps
      fills.push(fillOf(order, share, reducing))
    }
  }
  return fills.sort((a, b) => a.account - b.account)
}

function fillOf(order: RestingOrder, { taker, maker, fee }: Tally, reducing: Steps): Fill {
  const fill = (taker + maker) as Steps
  return {
    seq: order.seq,
    account: order.account,
    side: order.side,
    fill,
    reducing,
    opening: (fill - reducing) as Steps,
    taker,
    maker,
    fee,
    left: (order.remaining - fill) as Steps,
  }
}
