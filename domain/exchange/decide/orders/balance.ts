/** An account's balance, as the answer to a command states it. */
import { fundingIndexAt } from '../../../prices/funding-state.ts'
import type { Millis, Quote, UserId } from '../../../units.ts'
import { marketFunding } from '../../market-terms.ts'
import type { ExchangeState } from '../../state.ts'
import type { Balance } from './command.ts'

/** Funding of the account's positions accrues until `now`. The account must exist. */
export function balanceOf(state: ExchangeState, account: UserId, now: Millis): Balance {
  const { free, reserved, pendingWithdrawal } = state.accounts.need(account)
  let margin = 0n
  for (const { marketId, size, foldedMargin } of state.positionIndex.of(account)) {
    if (size === 0 && foldedMargin === 0n) continue
    margin += foldedMargin - BigInt(size) * fundingIndexAt(marketFunding(state, marketId), now)
  }
  return { free, reserved, pendingWithdrawal, positionMargin: margin as Quote }
}
