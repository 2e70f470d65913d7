/** The contracts whose events are followed. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Address } from '../../domain/units.ts'

/** The followed contracts. */
export interface Contracts {
  readonly bank: Address
  readonly accountManager: Address
  readonly forwarder: Address
  /** By the address of the market's contract. */
  readonly markets: ReadonlyMap<Address, MarketSpec>
}

export const addressesOf = ({ bank, accountManager, forwarder, markets }: Contracts): Address[] => [
  bank,
  accountManager,
  forwarder,
  ...markets.keys(),
]
