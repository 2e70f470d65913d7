/** Lists a deployed market. From then on it has a state; it accepts orders once it has an oracle price. */
import type { MarketSpec } from '../../../market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../market/price-protection.ts'
import { toStoredSpec } from '../../../market/stored-spec.ts'
import type { Decider } from '../../decide.ts'

export interface ListMarketCommand {
  readonly kind: 'list_market'
  readonly spec: MarketSpec
}

/** `isNew`: false if the market was listed before; nothing changes then. */
export interface Listed {
  readonly isNew: boolean
}

/** A market with funding only in sessions follows the New York calendar. */
export const decideListing: Decider<ListMarketCommand, Listed> = (draft, _inputs, { spec }) => {
  const { marketId } = spec
  if (draft.state.markets.get(String(marketId)) !== undefined) return { isNew: false }
  const price_protection = DEFAULT_PRICE_PROTECTION[spec.kind].toString()
  draft.write(marketId, { kind: 'market_listed', spec: toStoredSpec(spec), price_protection })
  return { isNew: true }
}
