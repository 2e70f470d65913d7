/** What keeper and indexer do with the orders of an exchange, without a chain. */
import type { MarketSpec } from '../../../domain/market/market.ts'
import { createAuction, createMarketMemory, createMarks } from '../../keeper/support/engine-turns.ts'
import { MarketFixture, RULES, realClock } from '../../keeper/support/market-fixture.ts'
import { mineOldestPart } from '../../keeper/support/mine-part.ts'
import { perpetual } from '../../support/markets.ts'
import type { ExchangeFixture } from './exchange-fixture.ts'

const fixtureOf = ({ db, url }: ExchangeFixture, spec: MarketSpec): MarketFixture =>
  new MarketFixture(db, url, spec, realClock())

/**
 * Runs one auction, once the batches before it are mined: a market waits while a part is older than half of its lifetime, which a slow machine could reach
 * within a test. Returns the number of the batch; null if nothing matched.
 */
export async function runAuction(exchange: ExchangeFixture, spec = perpetual): Promise<number | null> {
  const fixture = fixtureOf(exchange, spec)
  for (let isMined = true; isMined; ) isMined = await mineOldestPart(fixture)
  const memory = createMarketMemory({ ...RULES, kind: spec.kind })
  const batch = await createAuction(fixture.turnPorts(), spec, memory).run()
  await exchange.project()
  return batch
}

/** Publishes the mark, which triggers conditional orders. */
export async function updateMarks(exchange: ExchangeFixture, spec = perpetual): Promise<void> {
  const fixture = fixtureOf(exchange, spec)
  await createMarks(fixture.turnPorts(), spec, createMarketMemory({ ...RULES, kind: spec.kind })).update()
  await exchange.project()
}

/** Mines the oldest part that waits. */
export async function minePart(exchange: ExchangeFixture, spec = perpetual): Promise<void> {
  await mineOldestPart(fixtureOf(exchange, spec))
  await exchange.project()
}
