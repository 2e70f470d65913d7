/** One run of faults on a market with contracts, keeper and indexer: what traders match, what is queued, and what node and clock do. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import type { Fence } from '../../../db/fence.ts'
import type { Side } from '../../../domain/orders/order.ts'
import type { HourlyFunding } from '../../../domain/units.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { foreignTransfer, replaceBlocks } from '../../support/chain-faults.ts'
import { withMirror } from '../../support/mirror.ts'
import { PATIENCE } from '../../support/patience.ts'
import { loadInputs } from '../../support/rows/batches.ts'
import { ActionFixture, RATE } from './action-fixture.ts'
import type { Fault } from './any-fault.ts'
import { type ChainFixture, foreignTransaction, laneKey, type SettlementFixture } from './chain-fixture.ts'
import { expectConsistent, expectSameReadModel } from './invariants.ts'
import { addressOf, type Placement, type Trader } from './market-fixture.ts'
import { type MarketLoop, startMarketLoop } from './market-loop.ts'

const stranger = new Wallet(id('stranger'))
const PRICE = 1000
const LOW_PRICE = 970
/** A long from 1,000 with leverage 20 is below the liquidation threshold, and above two thirds of MMR. */
const THRESHOLD_PRICE = 974
const SETTLE_LIMIT_MS = 25_000 * PATIENCE

interface Fences {
  readonly auction: Fence
  readonly settle: Fence
}

interface Traders {
  readonly alice: Trader
  readonly bob: Trader
  readonly carol: Trader
  readonly dave: Trader
}

/** Why an action that the contract would have accepted ends: its transaction, or one before it, could not be mined. */
const NOT_MINED = [
  'behind a voided batch',
  'not mined in time',
  'nonce used by a foreign transaction',
  'AsOfStale(',
]

export class FaultRun {
  readonly fixture: ChainFixture
  readonly counts: Record<string, number> = {}
  readonly actions: ActionFixture
  readonly traders: Traders
  readonly #fences: Fences
  readonly #loop: MarketLoop
  readonly #url: string
  /** Of the node and of the action fixture's clock, ahead of the computer's. */
  readonly time: { aheadMs: number }
  /** Blocks up to this one stay: they contain the deposits. */
  #firstBlock: number
  /** Numbers in the queue of deleveragings that the contract would accept when they were queued. */
  readonly #accepted: number[] = []
  #settlement!: SettlementFixture
  #badOrders = 0

  private constructor(
    fixture: ChainFixture,
    actions: ActionFixture,
    traders: Traders,
    more: {
      readonly fences: Fences
      readonly url: string
      readonly firstBlock: number
      readonly time: { aheadMs: number }
    },
  ) {
    this.fixture = fixture
    this.actions = actions
    this.traders = traders
    this.#fences = more.fences
    this.#loop = startMarketLoop(fixture)
    this.#url = more.url
    this.#firstBlock = more.firstBlock
    this.time = more.time
  }

  /** `url`: of the node that the keeper uses. */
  static async open(fixture: ChainFixture, url: string): Promise<FaultRun> {
    const time = { aheadMs: 0 }
    const now = () => Date.now() + time.aheadMs
    const actions = new ActionFixture(fixture, now)
    await actions.report(PRICE)
    await actions.withBackstop()
    const traders = {
      alice: await fixture.depositor('alice'),
      bob: await fixture.depositor('bob'),
      carol: await fixture.depositor('carol'),
      dave: await fixture.depositor('dave'),
    }
    const fences = { auction: await fixture.lease('auction:m1'), settle: await fixture.lease('settle:m1') }
    const firstBlock = await fixture.chainSide.provider.getBlockNumber()
    const run = new FaultRun(fixture, actions, traders, { fences, url, firstBlock, time })
    await run.#restart()
    return run
  }

  async take(fault: Fault): Promise<void> {
    const { fixture } = this
    const { alice, bob } = this.traders
    this.count(fault.kind)
    switch (fault.kind) {
      case 'match':
        if (fault.isBad) this.#badOrders++
        await this.match(alice, fault.steps, fault.isBad ? { signer: stranger } : {})
        return
      case 'expire':
        return this.#expire(fault.count)
      case 'fund':
        await this.actions.updateFunding(PRICE, (fault.isBad ? RATE * 1000n : RATE) as HourlyFunding)
        return
      case 'liquidate':
        return this.#liquidate()
      case 'deleverage_insolvent':
        return this.#deleverageInsolvent(fault)
      case 'force':
        return this.#force(fault)
      case 'inherit':
        await this.actions.inherit(alice, PRICE)
        return
      case 'deleverage':
        await this.actions.deleverage(alice, bob, 1, PRICE)
        return
      case 'finalize':
        return this.#finalize()
      case 'step':
        return this.#settlement.step(this.#fences.settle)
      case 'follow':
        return fixture.follow()
      case 'foreign':
        return foreignTransaction(fixture.chainSide, await this.#usedNonces())
      case 'restart':
        return this.#restart()
      case 'fork':
        return this.#fork(fault.depth, fault.isForeign)
      case 'clock':
        fixture.clock.value += fault.ms
    }
  }

  /** Returns the batch, or null: alice's account is left out of batches while an action that names it is queued. */
  async match(by: Trader, steps: number, more: Partial<Placement> = {}): Promise<number | null> {
    const { fixture } = this
    await this.actions.report(PRICE)
    await fixture.place({ ...{ by, side: 'LONG', steps, limit: PRICE }, ...more })
    await fixture.place({ by: this.traders.bob, side: 'SHORT', steps, limit: PRICE })
    return this.#loop.auction()
  }

  /** After a fork the chain's time may be too far behind the price report for a batch. */
  async #matchInTime(by: Trader): Promise<void> {
    const deadline = Date.now() + SETTLE_LIMIT_MS
    while ((await this.match(by, 1)) === null && Date.now() < deadline) await sleep(300)
  }

  async #expire(count: number): Promise<void> {
    const expiration = Math.floor(Date.now() / 1000) + 1
    const { alice: by } = this.traders
    for (let at = 0; at < count; at++)
      await this.fixture.place({ by, side: 'LONG', steps: 10, limit: 990, expiration })
  }

  async #liquidate(): Promise<void> {
    const { carol } = this.traders
    await this.match(carol, 20, { leverage: this.fixture.spec.maxLeverage })
    await this.actions.inherit(carol, LOW_PRICE)
    await this.actions.report(PRICE)
  }

  /** At the highest leverage, against bob's sell or alice's buy. */
  async openDave(side: Side, steps = 20): Promise<number | null> {
    const { fixture } = this
    const { alice, bob, dave } = this.traders
    await this.actions.report(PRICE)
    await fixture.place({ by: dave, side, steps, limit: PRICE, leverage: fixture.spec.maxLeverage })
    const [by, other] = side === 'LONG' ? ([bob, 'SHORT'] as const) : ([alice, 'LONG'] as const)
    await fixture.place({ by, side: other, steps, limit: PRICE })
    return this.#loop.auction()
  }

  /** A forced order that a void returns to the book ends at the next turn at the old price. */
  async #force({ bid, turns }: Extract<Fault, { kind: 'force' }>): Promise<void> {
    const { bob } = this.traders
    await this.openDave('LONG')
    await this.fixture.place({ by: bob, side: 'LONG', steps: bid, limit: 985 })
    await this.actions.report(THRESHOLD_PRICE)
    for (let turn = 0; turn < turns; turn++) await this.#loop.turn()
    await this.#recover()
  }

  async #recover(): Promise<void> {
    await this.actions.report(PRICE)
    await this.#loop.turn()
  }

  async #deleverageInsolvent({
    side,
    moved,
    shares,
  }: Extract<Fault, { kind: 'deleverage_insolvent' }>): Promise<void> {
    await this.openDave(side)
    const queueNo = await this.actions.deleverageInsolvent(PRICE + (side === 'LONG' ? -moved : moved), shares)
    if (queueNo !== null) this.#accepted.push(queueNo)
    await this.actions.report(PRICE)
  }

  /** Nothing may be queued behind it, so it is only queued where its end does not have to be waited for. */
  async #finalize(): Promise<void> {
    await this.actions.finalize(await this.actions.report(PRICE))
    await this.settleAll()
  }

  async #restart(): Promise<void> {
    this.#settlement = this.fixture.settlement({ url: this.#url })
    await this.#settlement.start(this.#fences.settle)
  }

  async #fork(depth: number, isForeign: boolean): Promise<void> {
    const { provider } = this.fixture.chainSide
    const head = await provider.getBlockNumber()
    const replaced = Math.min(depth, head - this.#firstBlock)
    const foreign = isForeign ? [await foreignTransfer(provider, laneKey, head - replaced)] : []
    if (replaced > 0) await replaceBlocks(provider, replaced, foreign, this.time.aheadMs)
  }

  /** No fork takes back what is on the chain by now. */
  async keepBlocks(): Promise<void> {
    this.#firstBlock = await this.fixture.chainSide.provider.getBlockNumber()
  }

  #usedNonces(): Promise<number> {
    const { chainSide, lane } = this.fixture
    return chainSide.provider.getTransactionCount(lane.relayer)
  }

  // ---------------------------------------------------------------------- laws

  settleAll(): Promise<void> {
    return this.#settlement.settleAll(this.#fences.settle, SETTLE_LIMIT_MS)
  }

  /** Everything has settled or ended, the database has what the contracts have, and the market still trades. */
  async expectSettled(): Promise<void> {
    const { fixture } = this
    await this.settleAll()
    await this.#expectNoLiquidation()
    await this.#expectTrading()
    await this.#expectOpen()
    await this.#expectDeleveraging()
    await this.#settlement.step(this.#fences.settle)
    await this.#expectExpired()
    await expectConsistent(fixture)
    await expectSameReadModel(fixture)
    await this.#expectOpen()
    const { last_as_of } = await fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
    expect(last_as_of).to.be.closeTo(Date.now(), 30_000)
    await this.expectAsOnChain()
    await this.#expectFundingOfBatches()
    await this.#expectMinedDeleveragings()
    await this.expectNonces()
  }

  /** At the old price no position is below the threshold: what a void has returned to the book ends. */
  async #expectNoLiquidation(): Promise<void> {
    const { db } = this.fixture
    const deadline = Date.now() + SETTLE_LIMIT_MS
    const isLeft = async () => {
      const forced = (await this.fixture.orders()).filter(({ forced, endedAt }) => forced && endedAt === null)
      return forced.length + (await db.selectFrom('liquidations').selectAll().execute()).length > 0
    }
    // After a fork the chain's time may be too far behind the report.
    while ((await isLeft()) && Date.now() < deadline) {
      await this.#recover()
      await this.settleAll()
    }
    expect(await isLeft(), 'a liquidation runs at a price at which all are healthy').to.equal(false)
    for (const { side } of (await this.fixture.orders()).filter(({ filled, forced }) => forced && filled > 0))
      this.count(`forced fills of a ${side === 'SHORT' ? 'LONG' : 'SHORT'}`)
  }

  async #expectOpen(): Promise<void> {
    const mismatches = await this.fixture.db.selectFrom('settlement_mismatches').selectAll().execute()
    const voids = (await this.fixture.rows('batch_voided')).map(({ why }) => why)
    expect(await this.fixture.mode(), JSON.stringify({ mismatches, voids })).to.equal('open')
  }

  async expectNonces(): Promise<void> {
    const { next_nonce } = await this.fixture.db
      .selectFrom('relayers')
      .select('next_nonce')
      .executeTakeFirstOrThrow()
    expect(await this.#usedNonces()).to.equal(next_nonce)
  }

  /** Without faults a deleveraging is mined, and after a fork it is mined again. */
  async #expectDeleveraging(): Promise<void> {
    for (const { orderId, expiration, endedAt } of await this.fixture.orders())
      if (endedAt === null && expiration === 0) await this.fixture.cancel(orderId)
    const deadline = Date.now() + SETTLE_LIMIT_MS
    let queueNo: number | null = null
    while (queueNo === null && Date.now() < deadline) {
      await this.openDave('LONG', 40)
      await this.settleAll()
      queueNo = await this.actions.deleverageInsolvent(PRICE - 60, [3])
    }
    await this.settleAll()
    await this.#fork(3, false)
    await this.settleAll()
    const action = (await this.fixture.actions()).find(({ queue_no }) => queue_no === queueNo)
    expect(action?.status, `deleveraging ${queueNo}: ${action?.failure}`).to.equal('MINED')
    await this.actions.report(PRICE)
  }

  /** Each is mined, unless its transaction or one before it could not be. */
  async #expectMinedDeleveragings(): Promise<void> {
    const actions = await this.fixture.actions()
    const own = actions.filter(({ queue_no }) => this.#accepted.includes(queue_no))
    const isNotMined = (failure: string | null) => NOT_MINED.some((why) => failure?.startsWith(why))
    for (const { queue_no, status, failure } of own) {
      this.count(`deleveraging ${status}`)
      if (status !== 'MINED')
        expect(isNotMined(failure), `deleveraging ${queue_no}: ${failure}`).to.equal(true)
    }
  }

  count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  /** A batch settles, after at most one void for each order with a bad signature that still rests, and one for a fork's foreign nonce. */
  async #expectTrading(): Promise<void> {
    for (let left = this.#badOrders + 1; ; left--) {
      await this.#matchInTime(this.traders.alice)
      await this.settleAll()
      const last = (await this.fixture.actions()).findLast(({ kind }) => kind === 'settle_part')
      if (last?.status === 'MINED') return
      const reasons = (await this.fixture.rows('batch_voided')).map(({ why }) => why)
      expect(left, `the market does not trade; voids: ${reasons.join()}`).to.be.greaterThan(0)
    }
  }

  async #expectExpired(): Promise<void> {
    const resting = (await this.fixture.orders()).filter(({ expiration }) => expiration !== 0)
    const last = Math.max(0, ...resting.map(({ expiration }) => expiration))
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, (last + 1) * 1000 - Date.now())))
    await this.#loop.auction()
    const ended = (await this.fixture.orders()).filter(({ expiration }) => expiration !== 0)
    expect(ended.filter(({ status }) => status !== 'EXPIRED').map(({ orderId }) => orderId)).to.deep.equal([])
  }

  async expectAsOnChain(): Promise<void> {
    const { fixture } = this
    const { db, chainSide } = fixture
    const bank = MarginBank__factory.connect(chainSide.shared.marginBank, chainSide.provider)
    const trading = fixture.trading()
    const mined = (await fixture.actions()).filter(({ status }) => status === 'MINED')
    expect(mined.map(({ action_id }) => action_id)).to.deep.equal(mined.map((_, at) => at + 1))
    expect((await trading.clock()).actionId).to.equal(BigInt(mined.length))
    const { fundingIndex } = await trading.lastReference()
    expect((await this.actions.funding()).index).to.equal(fundingIndex)
    const users = await db.selectFrom('users').select(['user_id', 'address']).execute()
    for (const { user_id, address } of users) {
      const { free } = await bank.account(address)
      const own = withMirror(db).selectFrom('accounts').select('free').where('user_id', '=', user_id)
      expect((await own.executeTakeFirst())?.free ?? 0n, `free of ${user_id}`).to.equal(free)
      const { size, entryNotional, margin } = await trading.position(address)
      const held = withMirror(db).selectFrom('positions').selectAll().where('user_id', '=', user_id)
      const row = await held.executeTakeFirst()
      expect(
        [BigInt(row?.size ?? 0), row?.entry_notional ?? 0n, row?.folded_margin ?? 0n],
        `position of ${user_id}`,
      ).to.deep.equal([size, entryNotional, margin + size * fundingIndex])
    }
    expect(users.map(({ address }) => address)).to.include(addressOf(this.traders.carol.wallet))
  }

  /** Batches of a queue without dropped actions were matched on the funding index that the contract used for them. */
  async #expectFundingOfBatches(): Promise<void> {
    const { db, spec } = this.fixture
    if ((await this.fixture.rows('action_dropped')).length > 0) return
    const trading = this.fixture.trading()
    for (const { args } of await trading.queryFilter(trading.filters.BatchSettled(), this.#firstBlock)) {
      const inputs = await loadInputs(db, spec.marketId, Number(args.batchId))
      const emitted = BigInt.asIntN(128, BigInt(`0x${args.data.slice(2 + 128, 2 + 160)}`))
      expect(inputs?.fundingIndex, `batch ${args.batchId}`).to.equal(emitted)
    }
  }
}
