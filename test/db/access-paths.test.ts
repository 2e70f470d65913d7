/** What a statement reads does not grow with the age of the exchange: each touches few pages of a grown database. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, beforeEach, describe, it } from 'mocha'
import { batchState, captureBatch, namesOf } from '../../api/auctions/proof-query.ts'
import { ordersOf } from '../../api/auctions/proof-view.ts'
import {
  digestsOf,
  feedStates,
  jobLeases,
  journalState,
  marketStates,
  relayerKeys,
} from '../../api/operate/query.ts'
import { orderByClientId } from '../../api/orders/query.ts'
import { packInputs, unpackInputs } from '../../db/batch-inputs.ts'
import type { Fence } from '../../db/fence.ts'
import type { ClearingInputs } from '../../domain/auction/clearing.ts'
import type { Address, FundingIndex, Millis, Price, UserId } from '../../domain/units.ts'
import { createEngineRecord } from '../../indexer/ingest/engine-record.ts'
import { eventlessActions } from '../../indexer/ingest/eventless-actions.ts'
import { claimPurposes, reportPurpose } from '../../keeper/ending/purposes.ts'
import { createEndingStore } from '../../keeper/ending/store.ts'
import { createFaucetStore } from '../../keeper/faucet/store.ts'
import { createFigureStore } from '../../keeper/figures/store.ts'
import { createProofStore } from '../../keeper/proofs/store.ts'
import { createRankStore } from '../../keeper/ranks/store.ts'
import type { RelayerLane } from '../../keeper/relayer/ports.ts'
import { createRelayerStore } from '../../keeper/relayer/store.ts'
import { createSettlementStore } from '../../keeper/settlement/store.ts'
import { createAuction, createMarketMemory } from '../keeper/support/engine-turns.ts'
import { addressOf, MarketFixture, RULES, type Trader } from '../keeper/support/market-fixture.ts'
import { createExplainedDb, type ExplainedDb } from '../support/explained-db.ts'
import { GROWN_CHAIN, GROWN_RELAYER, growDatabase, grownHash } from '../support/grown-database.ts'
import { perpetual } from '../support/markets.ts'
import { markProjected } from '../support/mirror.ts'
import { loadInputs } from '../support/rows/batches.ts'

/** Each grown table has more than 300 pages, and a whole index of it more than 100. */
const SIZES = { accounts: 30_000, orders: 30_000, actions: 30_000, journal: 30_000 }
const MOST_PAGES = 100

describe('the access paths of the write side', function () {
  this.timeout(120_000)
  const lane: RelayerLane = { name: 'm1', relayer: GROWN_RELAYER as Address, chainId: GROWN_CHAIN }
  let fixture: MarketFixture
  let explained: ExplainedDb
  let alice: Trader
  let bob: Trader
  let fence: Fence
  const parts = () => ({ db: explained.db, engine: fixture.engine })
  const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })

  before(async () => {
    fixture = await MarketFixture.open(perpetual)
    await growDatabase(fixture.db, perpetual.marketId, SIZES)
    await fixture.db
      .insertInto('chain_progress')
      .values({
        chain_id: GROWN_CHAIN,
        genesis_hash: '0x00',
        next_block: SIZES.actions + 1,
        head: SIZES.actions,
        completed_at: 0,
      })
      .execute()
    explained = createExplainedDb(fixture.url)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    fence = await fixture.lease('m1')
    await fixture.report(1000)
    await createAuction(fixture.turnPorts(), perpetual, memory).run()
  })
  after(async () => {
    await explained.db.destroy()
    await fixture.close()
  })
  beforeEach(() => void explained.drain())

  function expectFewPages(): void {
    const statements = explained.drain()
    expect(statements).not.to.deep.equal([])
    expect(statements.filter(({ pages }) => pages > MOST_PAGES)).to.deep.equal([])
  }

  async function match(): Promise<void> {
    const auction = createAuction(fixture.turnPorts(), perpetual, memory)
    await auction.run()
    await fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 1000 })
    expect(await auction.run()).to.be.a('number')
  }

  /** Signs the next action and marks it as sent. Returns its transaction. */
  async function send() {
    const store = createSettlementStore(parts())
    const reserved = await store.reserveNext(perpetual.marketId, lane, fence, fixture.clock.now())
    if (reserved === null) throw new Error('no action is queued')
    const bytes = { hash: `0xsent${reserved.nonce}`, raw: '0x' as const, signedAt: fixture.clock.now() }
    const sent = await store.storeSigned(perpetual.marketId, lane, fence, reserved, bytes)
    await store.noteSubmitted(perpetual.marketId, fence, sent, fixture.clock.now())
    return sent
  }

  it('when an account has given a label to many orders, the newest one is found by an index', async () => {
    await sql`
      update orders set user_id = ${alice.account}, client_order_id = 'bid'
      where market_id = ${perpetual.marketId} and ended_at is not null
    `.execute(fixture.db)
    const labelled = await orderByClientId(explained.db, alice.account, 'bid')
    expect(labelled?.order_id).to.be.a('string')
    expect(await orderByClientId(explained.db, alice.account, 'ask')).to.equal(undefined)
    expectFewPages()
  })

  it("when the operator's view is read, each statement finds its rows by an index", async () => {
    await match()
    const [market] = await marketStates(explained.db)
    expect(market?.queued).to.be.greaterThan(0)
    const journal = await journalState(explained.db)
    expect(await digestsOf(explained.db, [journal?.head ?? 0])).to.have.length(1)
    await relayerKeys(explained.db, GROWN_CHAIN)
    await jobLeases(explained.db)
    await feedStates(explained.db)
    expectFewPages()
  })

  it('when an action is signed, sent and mined, each statement finds its rows by an index', async () => {
    await match()
    const relayers = createRelayerStore(parts())
    await relayers.register(lane, SIZES.actions + 1)
    const sent = await send()
    const store = createSettlementStore(parts())
    const { transactions } = await store.view(perpetual.marketId, lane)
    expect(transactions.map(({ hash }) => hash)).to.include(sent.hash)
    await store.adoptActionId(perpetual.marketId, lane, fence, 1)
    await relayers.open(lane)
    await relayers.nextNonce(lane)
    await relayers.assigned(lane, sent.nonce, sent.nonce + 100)
    await relayers.reserved(lane, sent.nonce, sent.nonce + 100)
    await relayers.noteSend(sent.hash, fixture.clock.now(), null)
    const receipt = {
      hash: sent.hash,
      succeeded: true,
      block: SIZES.actions + 1,
      gasUsed: 0n,
      effectiveGasPrice: 0n,
    }
    await relayers.noteReceipt(lane, sent.nonce, receipt)
    await eventlessActions(explained.db, { transactions: [sent.hash] }, [])
    await relayers.reopen(lane, [sent.nonce])
    await relayers.noteForeign(lane, sent.nonce)
    expectFewPages()
    await fixture.db.updateTable('actions').set({ status: 'MINED' }).where('nonce', '=', sent.nonce).execute()
  })

  it('when a block is recorded through the engine, each statement finds its rows by an index', async () => {
    const submit = async () => ({ answer: { kind: 'done', nextBlock: SIZES.actions + 2 } as never })
    const engine = { submit, inform: async () => {} }
    const chain = {
      position: () => Promise.reject(new Error('no position is read')),
      block: () => Promise.reject(new Error('no block is read')),
    }
    const logger = { debug() {}, info() {}, warn() {}, error() {} }
    const record = createEngineRecord({ db: explained.db, engine, chain, logger }, GROWN_CHAIN)
    const { nextBlock: number } = await record.progress()
    await record.blockAtOrBelow(number)
    const hash = grownHash(number)
    const block = { number, hash, parentHash: grownHash(number - 1), timestamp: 1, transactions: [] }
    const log = {
      block: number,
      blockHash: hash,
      logIndex: 0,
      txHash: grownHash(1),
      address: '0x' as Address,
      topics: [],
      data: '0x',
    }
    const facts = [{ log, fact: { kind: 'ignored', event: 'Test' } as const }]
    await record.ingest({ from: number, block, facts, mismatches: [] })
    await record.complete(number, 1 as Millis)
    expectFewPages()
  })

  it('when the figures of a market are read and its ranks stored, each statement finds its rows by an index', async () => {
    await fixture.db
      .updateTable('markets')
      .set({ backstop: addressOf(alice.wallet), backstop_cap: 1n })
      .execute()
    await createFigureStore(explained.db, fixture.databaseTime).load(perpetual.marketId)
    const ranks = { oracle: 1n as Price, index: 0n as FundingIndex, longs: [1n], shorts: [] }
    for (const at of [1, 2])
      await createRankStore(explained.db).save(perpetual.marketId, fence, ranks, at as Millis)
    expectFewPages()
  })

  it('when the proof of a batch is read, orders, triggered ones too, and fills are found by an index', async () => {
    await match()
    const { marketId } = perpetual
    const { last_batch_id: batchId } = await fixture.db
      .selectFrom('markets')
      .select('last_batch_id')
      .where('market_id', '=', marketId)
      .executeTakeFirstOrThrow()
    await sql`
      insert into read.batches (market_id, batch_id, as_of, price, lo, hi, volume, demand, supply, rule, parts, status, oracle_price, oracle_at)
      select market_id, batch_id, as_of, price, lo, hi, volume, demand, supply, rule, parts, status, oracle_price, oracle_at from batches
      where market_id = ${marketId}
    `.execute(fixture.db)
    // One of the two orders becomes a triggered one.
    const [{ seq } = { seq: 0 }] = await fixture.orders().then((orders) => orders.slice(-1))
    await sql`update orders set triggered = '{}' where market_id = ${marketId} and seq = ${seq}`.execute(
      fixture.db,
    )
    const inputs = (await loadInputs(fixture.db, marketId, batchId)) as ClearingInputs
    const triggered = inputs.orders.map((order) => ({ ...order, triggered: order.seq === seq }))
    await fixture.db
      .updateTable('batch_inputs')
      .set({ inputs: packInputs({ ...inputs, orders: triggered }) })
      .where('market_id', '=', marketId)
      .where('batch_id', '=', batchId)
      .execute()
    explained.drain()
    const batch = { marketId, batchId }
    await batchState(explained.db, batch)
    const captured = await captureBatch(explained.db, batch)
    const orders = ordersOf(marketId, unpackInputs(captured.inputs))
    expect(JSON.parse(await namesOf(explained.db, marketId, orders))).to.have.length(2)
    expectFewPages()
  })

  it('when old inputs of batches are deleted, the younger ones are not read', async () => {
    expect(await createProofStore(explained.db).deleteInputs(fence, fixture.clock.now(), 5)).to.equal(5)
    expectFewPages()
  })

  it('when the faucet looks for requests, it does not read the finished ones', async () => {
    const store = createFaucetStore(parts())
    await store.requested(20)
    await store.finish(lane)
    expectFewPages()
  })

  it('when a market with many open positions and paid claims has ended, its payouts find their rows by an index', async () => {
    const { marketId } = perpetual
    await sql`update read.positions set size = 1 where market_id = ${marketId}`.execute(fixture.db)
    await markProjected(fixture.db)
    await sql`
      update relayer_transactions set purpose = ${claimPurposes(marketId)} || nonce where relayer = ${GROWN_RELAYER}
    `.execute(fixture.db)
    await sql`update markets set settling_at = 1, mode = 'settled'`.execute(fixture.db)
    await sql`vacuum analyze read.positions`.execute(fixture.db)
    await sql`vacuum analyze relayer_transactions`.execute(fixture.db)
    const store = createEndingStore(explained.db)
    expect(await store.markets(fixture.clock.now())).to.have.length(1)
    await store.finalReport(marketId)
    await store.ownReports(marketId, fixture.clock.now())
    await store.lastSent(lane, reportPurpose(marketId))
    const page = { after: 0 as UserId, limit: 10, retryAfter: fixture.clock.now() }
    expect(await store.positions(marketId, page.after, page.limit)).to.have.length(10)
    expect(await store.unclaimed(lane, marketId, page)).to.have.length(10)
    expectFewPages()
  })
})
