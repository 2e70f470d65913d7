/** Computes the fill of each order from its pairs and its account's position. */
import type { RestingOrder } from '../book/book.ts'
import { minOf, type Steps } from '../units.ts'
import type { Fill, Pair } from './clearing.ts'
import { type Tally, tally } from './pairing.ts'
import type { PositionCapacity } from './position-capacity.ts'
import type { PlannedShare } from './round.ts'

/**
 * Fills by account, in tranche order: they reduce the account's position until it is flat. Self-trade prevention leaves
 * each account one side per batch.
 */
export function fillsOf(sides: readonly (readonly PlannedShare[])[], pairs: readonly Pair[]): Fill[] {
  const tallies = tally(pairs)
  const fills: Fill[] = []
  for (const shares of sides) {
    let account: RestingOrder['account'] | null = null
    let reducible = 0 as Steps
    for (const { order, capacity, steps } of shares) {
      if (order.account !== account) reducible = capacityFor(order, capacity)
      account = order.account
      const reducing = minOf(steps, reducible)
      reducible = (reducible - reducing) as Steps
      fills.push(fillOf(order, tallies.get(order.seq) as Tally, reducing))
    }
  }
  return fills.sort((a, b) => a.account - b.account)
}

const capacityFor = (order: RestingOrder, { size, reducingSide }: PositionCapacity): Steps =>
  (order.side === reducingSide ? Math.abs(size) : 0) as Steps

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
    remaining: (order.remaining - fill) as Steps,
    ...(order.unused !== undefined && { unused: order.unused }),
  }
}
