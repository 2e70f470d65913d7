/**
 * Measures whether an exchange becomes slower with age. One database is filled with dead orders, settled actions, journal rows and accounts;
 * another is empty. Both play the same rounds, in turn: a batch is matched, signed, mined and projected. Prints a table with the median of
 * each step and one JSON line. Fails if a step takes more than 1.3 times as long in the full database.
 *
 *   npm run bench:growth -- [--orders 2000000] [--actions 1500000] [--journal 5000000] [--accounts 200000] [--rounds 100]
 */

import { performance } from 'node:perf_hooks'
import { insertProgress } from '../db/chain.ts'
import type { Fence } from '../db/fence.ts'
import { ACCOUNTS_SHARD, marketShard } from '../domain/journal/journal-row.ts'
import type { Address } from '../domain/units.ts'
import { confirmUpTo, eventlessActions, ingestBlock } from '../indexer/ingest/blocks.ts'
import { projectAll, projectShards } from '../indexer/project/project-shards.ts'
import { type Auction, createAuction } from '../keeper/auction/auction.ts'
import { createMarketMemory } from '../keeper/auction/market-memory.ts'
import type { RelayerLane } from '../keeper/relayer/ports.ts'
import { createRelayerStore } from '../keeper/relayer/store.ts'
import { createSettlementStore } from '../keeper/settlement/store.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { MarketFixture, RULES, type Trader } from '../test/keeper/support/market-fixture.ts'
import { minedPart, oldestPart, UNREAD_CHAIN } from '../test/keeper/support/mine-part.ts'
import {
  GROWN_CHAIN,
  GROWN_RELAYER,
  type GrownSizes,
  growDatabase,
  grownHash,
} from '../test/support/grown-database.ts'
import { perpetual } from '../test/support/markets.ts'

const MOST_RATIO = 1.3
/** Orders on each side of a round's batch. */
const PAIRS = 10
const WARM_UP_ROUNDS = 10
const NOTHING: GrownSizes = { accounts: 1, orders: 0, actions: 0, journal: 0 }
const LANE: RelayerLane = { name: 'm1', relayer: GROWN_RELAYER as Address, chainId: GROWN_CHAIN }
const PROJECTING = { limit: 1_000, killPoint() {} }
const STEPS = ['turn', 'signing', 'block', 'projection'] as const

type Step = (typeof STEPS)[number]

const count = (help: string) => wholeNumber(help, { least: 1 })
const { orders, actions, journal, accounts, rounds } = argumentsOf({
  command: 'npm run bench:growth --',
  flags: {
    orders: withDefault(count('number of dead orders'), 2_000_000),
    actions: withDefault(count('number of settled actions'), 1_500_000),
    journal: withDefault(count('number of journal rows'), 5_000_000),
    accounts: withDefault(count('number of accounts'), 200_000),
    rounds: withDefault(count('number of measured rounds'), 100),
  },
})

/** One market in a database of its own. */
interface Exchange {
  readonly fixture: MarketFixture
  readonly fence: Fence
  readonly auction: Auction
  readonly buyer: Trader
  readonly seller: Trader
  readonly times: Record<Step, number[]>
}

async function open(sizes: GrownSizes): Promise<Exchange> {
  const fixture = await MarketFixture.open(perpetual)
  await projectAll(fixture.db, PROJECTING)
  await growDatabase(fixture.db, perpetual.marketId, sizes)
  await insertProgress(fixture.db, { chainId: GROWN_CHAIN, hash: '0x00' }, sizes.actions + 1)
  await fixture.report(1000)
  const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
  return {
    fixture,
    fence: await fixture.lease('m1'),
    auction: createAuction(fixture.auctionPorts(), perpetual, memory),
    buyer: await fixture.trader('buyer', '1000000000'),
    seller: await fixture.trader('seller', '1000000000'),
    times: { turn: [], signing: [], block: [], projection: [] },
  }
}

async function timed<Value>(times: number[], work: () => Promise<Value>): Promise<Value> {
  const start = performance.now()
  const value = await work()
  times.push(performance.now() - start)
  return value
}

/** The buyer and the seller change sides each round, so that their positions do not grow. */
async function placeOrders({ fixture, buyer, seller }: Exchange, round: number): Promise<void> {
  const [long, short] = round % 2 === 0 ? [buyer, seller] : [seller, buyer]
  for (let pair = 0; pair < PAIRS; pair++) {
    await fixture.place({ by: long, side: 'LONG', steps: 20, limit: 1000 })
    await fixture.place({ by: short, side: 'SHORT', steps: 20, limit: 1000 })
  }
}

/** Signs the queued action and marks it as sent. */
async function sign({ fixture, fence }: Exchange, round: number): Promise<string> {
  const { db } = fixture
  const store = createSettlementStore(db)
  const now = fixture.clock.now()
  const hash = `0xsent${round}`
  const reserved = await store.reserveNext(perpetual.marketId, LANE, fence, now)
  if (reserved === null) throw new Error('no action is queued')
  const bytes = { hash, raw: '0x', signedAt: now } as const
  const sent = await store.storeSigned(perpetual.marketId, LANE, fence, reserved, bytes)
  await store.noteSubmitted(perpetual.marketId, fence, sent, now)
  await store.view(perpetual.marketId, LANE)
  return hash
}

async function mine({ fixture, times }: Exchange, hash: string): Promise<void> {
  const { db } = fixture
  const action = await oldestPart(fixture)
  if (action?.nonce == null) throw new Error('no action is signed')
  const receipt = { hash, succeeded: true, block: action.queue_no, gasUsed: 0n, effectiveGasPrice: 0n }
  await createRelayerStore(db).noteReceipt(LANE, action.nonce, receipt)
  const { block: mined, facts } = await minedPart(fixture, action)
  const block = { ...mined, parentHash: grownHash(mined.number - 1), transactions: [hash] }
  const next = { chainId: GROWN_CHAIN, from: block.number, block, facts, mismatches: [] }
  const recorded = await timed(times.block, async () => {
    await eventlessActions(db, block, facts)
    const outcome = await ingestBlock(db, next, {
      chain: UNREAD_CHAIN,
      now: fixture.clock.now(),
      killPoint() {},
      stepFacts: 20,
    })
    await confirmUpTo(db, block.number, fixture.clock.now())
    return outcome
  })
  if (!Array.isArray(recorded) || recorded.length > 0)
    throw new Error(`the block was not recorded: ${JSON.stringify(recorded)}`)
}

async function play(exchange: Exchange, round: number): Promise<void> {
  const { fixture, fence, auction, times } = exchange
  await placeOrders(exchange, round)
  fixture.clock.value += 200
  await fixture.report(1000)
  if ((await timed(times.turn, () => auction.run(fence))) === null) throw new Error('the turn had no batch')
  const hash = await timed(times.signing, () => sign(exchange, round))
  await mine(exchange, hash)
  await timed(times.projection, async () => {
    for (const shard of [ACCOUNTS_SHARD, marketShard(perpetual.marketId)])
      await projectShards(fixture.db, [shard], PROJECTING)
  })
}

const median = (times: readonly number[]): number => percentile(times, 0.5)

const started = performance.now()
const empty = await open(NOTHING)
const grown = await open({ orders, actions, journal, accounts })
console.log(`databases filled in ${Math.round((performance.now() - started) / 1000)} s`)
for (let round = 0; round < WARM_UP_ROUNDS + rounds; round++) {
  // Each goes first in half of the rounds, because the first one pays for cold caches that both share.
  for (const exchange of round % 4 < 2 ? [empty, grown] : [grown, empty]) {
    if (round === WARM_UP_ROUNDS) for (const step of STEPS) exchange.times[step].length = 0
    await play(exchange, round)
  }
}
const results = STEPS.map((step) => {
  const [before, after] = [median(empty.times[step]), median(grown.times[step])]
  return {
    step,
    empty_ms: +before.toFixed(2),
    grown_ms: +after.toFixed(2),
    ratio: +(after / before).toFixed(2),
  }
})
console.table(results)
console.log(JSON.stringify({ bench: 'growth', orders, actions, journal, accounts, rounds, results }))
await empty.fixture.close()
await grown.fixture.close()
const slower = results.filter(({ ratio }) => ratio > MOST_RATIO)
if (slower.length > 0) {
  console.error(`more than ${MOST_RATIO} times as slow: ${slower.map(({ step }) => step).join(', ')}`)
  process.exitCode = 1
}
