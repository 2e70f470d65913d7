/** What most tests of settlement start with: a market with a price, its auction, the leases of both jobs, and traders with deposits. */
import type { Fence } from '../../../db/fence.ts'
import { ChainFixture, type Deployed } from './chain-fixture.ts'
import type { Auction } from './engine-turns.ts'
import type { Trader } from './market-fixture.ts'

export interface Trading {
  readonly fixture: ChainFixture
  readonly auction: Auction
  readonly settling: Fence
  readonly alice: Trader
  readonly bob: Trader
  readonly carol: Trader
  readonly dave: Trader
}

/** The oracle price is 1000 ticks. */
export async function openTrading(deployed: Deployed): Promise<Trading> {
  const fixture = await ChainFixture.openOn(deployed)
  await fixture.report(1000, Date.now())
  return {
    fixture,
    auction: fixture.auction(),
    settling: await fixture.lease(`settle:m${fixture.spec.marketId}`),
    alice: await fixture.depositor('alice'),
    bob: await fixture.depositor('bob'),
    carol: await fixture.depositor('carol'),
    dave: await fixture.depositor('dave'),
  }
}
