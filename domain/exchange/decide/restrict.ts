/**
 * Restricts markets to cancels.
 * It runs after a failed command about the market, because code or state is faulty there, and after a restore from a backup.
 */
import type { MarketId } from '../../units.ts'
import type { Decider } from '../decide.ts'

export interface RestrictCommand {
  readonly kind: 'restrict'
  readonly marketIds: readonly MarketId[]
  readonly why: 'fault' | 'restore'
}

export const decideRestriction: Decider<RestrictCommand, { readonly kind: 'restricted' }> = (
  draft,
  _,
  { marketIds, why },
) => {
  const { markets } = draft.state
  const open = marketIds.filter((marketId) => markets.get(String(marketId))?.mode === 'open')
  for (const marketId of open) draft.write(marketId, { kind: 'market_restricted', mode: 'cancel_only', why })
  return { kind: 'restricted' }
}
