/** What keeper and indexer do with the orders of an exchange, without a chain. */
import { createLeases } from '../../../db/leases.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import { MarketFixture, RULES, realClock } from '../../keeper/support/market-fixture.ts'
import { mineOldestPart } from '../../keeper/support/mine-part.ts'
import { perpetual } from '../../support/markets.ts'
import type { ExchangeFixture } from './exchange-fixture.ts'

const fixtureOf = ({ db, url }: ExchangeFixture, spec: MarketSpec): MarketFixture =>
  new MarketFixture(db, url, spec, realClock())

/** Runs one auction. Returns the number of its batch; null if nothing matched. */
export async function runAuction(exchange: ExchangeFixture, spec = perpetual): Promise<number | null> {
  const fixture = fixtureOf(exchange, spec)
  const fence = await fixture.lease(`m${spec.marketId}`)
  const memory = createMarketMemory({ ...RULES, kind: spec.kind })
  const batch = await createAuction(fixture.auctionPorts(), spec, memory).run(fence)
  await createLeases(exchange.db, 'one', 0).release(fence)
  await exchange.project()
  return batch
}

/** Mines the oldest part that waits. */
export async function minePart(exchange: ExchangeFixture, spec = perpetual): Promise<void> {
  await mineOldestPart(fixtureOf(exchange, spec))
  await exchange.project()
}
