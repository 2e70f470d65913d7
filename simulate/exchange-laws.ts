/** The laws of all markets and the bank together, see `laws.ts`. */

import type { Bank } from './chain.ts'
import { isSpared } from './ladder-laws.ts'
import type { SimulatedMarket } from './market.ts'
import { equityAt, isBelowThreshold, type Prices } from './reference.ts'
import type { Tally } from './tally.ts'
import type { Turn } from './turn.ts'

type Markets = readonly SimulatedMarket[]
type TurnAt = (market: number) => Turn

/** `deposited`: by all accounts, in wei. */
export function checkBooks(
  markets: Markets,
  bank: Bank,
  turnAt: TurnAt,
  { tally, deposited }: { readonly tally: Tally; readonly deposited: bigint },
): void {
  let total = bank.fees
  let least = 0n
  for (const free of bank.free.values()) {
    if (free < least) least = free
    total += free
  }
  for (const [at, market] of markets.entries()) {
    total += bank.pools.get(market.spec.marketId) ?? 0n
    checkPool(market, bank, turnAt(at), tally)
  }
  tally.check('conserved', least === 0n, () => `a free balance is ${least}`)
  tally.check('conserved', total === deposited, () => `${deposited} were deposited, ${total} are there`)
}

/** A pool is linear in the price: equal at two prices, it is equal at every price. */
export function checkPool(
  { spec, chain }: Pick<SimulatedMarket, 'spec' | 'chain'>,
  bank: Bank,
  { oracle, index }: Prices,
  tally: Tally,
): void {
  const prices: readonly Prices[] = [
    { oracle, index },
    { oracle: 3n * oracle + 1n, index },
  ]
  const sums = [0n, 0n] as [bigint, bigint]
  let size = 0
  for (const position of chain.positions.values()) {
    size += position.size
    for (const at of [0, 1] as const) sums[at] += equityAt(spec, position, prices[at] as Prices)
  }
  const pool = bank.pools.get(spec.marketId) ?? 0n
  tally.check('sizes', size === 0, () => `the sizes of market ${spec.marketId} sum to ${size}`)
  for (const sum of sums)
    tally.check(
      'pool',
      sum === pool * 10n ** 18n,
      () => `the pool is ${pool}, the equities are ${sum} / 1e18`,
    )
}

export function checkReservations(markets: Markets, bank: Bank, tally: Tally): void {
  for (const [account, free] of bank.free) {
    const reserved = markets.reduce((sum, market) => sum + market.reservedOf(account), 0n)
    tally.check('reserved', reserved <= free, () => `account ${account} reserves ${reserved} of ${free}`)
  }
}

/** After the ladder no equity is negative, unless no step covers it or the grace runs. */
export function checkEnd(markets: Markets, bank: Bank, turnAt: TurnAt, tally: Tally): void {
  for (const [at, market] of markets.entries()) {
    const turn = turnAt(at)
    const uncovered = new Set(market.liquidations.uncovered)
    for (const [account, position] of market.chain.positions) {
      if (position.size === 0) continue
      const equity = equityAt(market.spec, position, turn)
      const isDeficit =
        equity < 0n &&
        isBelowThreshold(market.spec, position, turn) &&
        !isSpared(bank.pauseEndsAt, turn.asOf, equity) &&
        !uncovered.has(account)
      tally.check('deficits', !isDeficit, () => `account ${account} keeps a negative equity of ${equity}`)
    }
  }
}
