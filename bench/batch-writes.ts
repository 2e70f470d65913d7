/**
 * Measures the longest transactions of a market when a batch would change very many orders: positions that close with many orders that reduce
 * them, many market orders, many self-trades. Each case runs auctions and mines their parts until nothing is left to do. Prints a table
 * and one JSON line; times are milliseconds. Fails if a transaction holds the market's lock longer than 300 ms. Needs a quiet machine.
 */

import { performance } from 'node:perf_hooks'
import { createAuction } from '../keeper/auction/auction.ts'
import { createMarketMemory } from '../keeper/auction/market-memory.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { insertLongs, insertManyOrders } from '../test/keeper/support/many-orders.ts'
import { MarketFixture, RULES } from '../test/keeper/support/market-fixture.ts'
import { mineOldestPart } from '../test/keeper/support/mine-part.ts'
import { perpetual } from '../test/support/markets.ts'

const MOST_MS = 300
/** Orders of each account. */
const PER_ACCOUNT = 499

const { accounts } = argumentsOf({
  command: 'npm run bench:batch-writes --',
  flags: { accounts: withDefault(wholeNumber('accounts of each case', { least: 1 }), 100) },
})

/** Positions of as many steps as each account has orders, one bid that closes all, and as many sells at `distance` ticks. */
async function closing(fixture: MarketFixture, reduceOnly: boolean): Promise<void> {
  const steps = 10 * PER_ACCOUNT
  const sells = {
    count: accounts * PER_ACCOUNT,
    perAccount: PER_ACCOUNT,
    side: 'SHORT',
    limit: 1040,
  } as const
  const ids = await insertManyOrders(fixture, { ...sells, reduceOnly, opens: false })
  await insertLongs(fixture, ids, steps)
  const close = { count: accounts, perAccount: 1, accounts: ids, side: 'SHORT', limit: 995, steps } as const
  await insertManyOrders(fixture, { ...close, reduceOnly: true })
  await insertManyOrders(fixture, { count: 1, perAccount: 1, limit: 1000, steps: steps * accounts })
}

const CASES: Readonly<Record<string, (fixture: MarketFixture) => Promise<void>>> = {
  'reduce-only orders': (fixture) => closing(fixture, true),
  'orders that reserve once the position is closed': (fixture) => closing(fixture, false),
  'market orders': async (fixture) => {
    await insertManyOrders(fixture, { count: 20 * 500, perAccount: 500, type: 'MARKET' })
  },
  'self-trades': async (fixture) => {
    const own = { count: accounts * 250, perAccount: 250 }
    const ids = await insertManyOrders(fixture, { ...own, side: 'LONG', limit: 1001 })
    await insertManyOrders(fixture, { ...own, accounts: ids, side: 'SHORT', limit: 1001 })
  },
}

async function timed<Value>(times: number[], work: () => Promise<Value>): Promise<Value> {
  const start = performance.now()
  const value = await work()
  times.push(performance.now() - start)
  return value
}

async function run(name: string, fill: (fixture: MarketFixture) => Promise<void>) {
  const fixture = await MarketFixture.open(perpetual)
  await fixture.report(1000)
  const fence = await fixture.lease('auction:m1')
  const ports = fixture.auctionPorts()
  const auctions: number[] = []
  const blocks: number[] = []
  let batches = 0
  const transaction: typeof ports.store.transaction = (...input) =>
    timed(auctions, () => ports.store.transaction(...input))
  const rules = { ...RULES, kind: perpetual.kind }
  const memory = createMarketMemory()
  const auction = createAuction({ ...ports, store: { ...ports.store, transaction } }, perpetual, memory)
  await fill(fixture)
  // Without the rules for reports no batch is made: this loads the book.
  await auction.run(fence)
  memory.rules = rules
  auctions.length = 0
  for (let isDone = false; !isDone; ) {
    fixture.clock.value += 200
    await fixture.report(1000)
    const batch = await auction.run(fence)
    if (batch !== null) batches++
    while (await timed(blocks, () => mineOldestPart(fixture))) {}
    isDone = batch === null && memory.deferrals.waiting.size === 0
  }
  await fixture.close()
  const most = (times: readonly number[]) => Math.round(Math.max(0, ...times))
  const median = (times: readonly number[]) => Math.round(percentile(times, 0.5))
  return {
    name,
    transactions: auctions.length,
    batches,
    auction_p50: median(auctions),
    auction_max: most(auctions),
    block_max: most(blocks),
  }
}

const rows = []
for (const [name, fill] of Object.entries(CASES)) rows.push(await run(name, fill))
console.table(rows)
console.log(JSON.stringify({ bench: 'batch-writes', accounts, per_account: PER_ACCOUNT, rows }))
if (rows.some(({ auction_max, block_max }) => Math.max(auction_max, block_max) > MOST_MS))
  process.exitCode = 1
