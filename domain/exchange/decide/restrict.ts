/** Restricts markets to cancels after a command about them has failed: the engine's code or state is faulty there. */
import type { MarketId } from '../../units.ts'
import type { Decider } from '../decide.ts'

export interface RestrictCommand {
  readonly kind: 'restrict'
  readonly marketIds: readonly MarketId[]
}

export const decideRestriction: Decider<RestrictCommand, { readonly kind: 'restricted' }> = (
  draft,
  _,
  { marketIds },
) => {
  const { markets } = draft.state
  const open = marketIds.filter((marketId) => markets.get(String(marketId))?.mode === 'open')
  for (const marketId of open)
    draft.write(marketId, { kind: 'market_restricted', mode: 'cancel_only', why: 'fault' })
  return { kind: 'restricted' }
}
