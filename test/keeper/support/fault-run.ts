/** One run of faults on a market with contracts, keeper and indexer: what traders match, what is queued, and what node and clock do. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import fc from 'fast-check'
import { loadInputs } from '../../../db/batches.ts'
import type { Fence } from '../../../db/fence.ts'
import type { HourlyFunding } from '../../../domain/units.ts'
import type { Auction } from '../../../keeper/auction/auction.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { foreignTransfer, replaceBlocks } from '../../support/chain-faults.ts'
import { ActionFixture, RATE } from './action-fixture.ts'
import { type ChainFixture, foreignTransaction, laneKey, type SettlementFixture } from './chain-fixture.ts'
import { expectConsistent, expectSameReadModel } from './invariants.ts'
import { addressOf, type Placement, type Trader } from './market-fixture.ts'

export type Fault =
  /** A batch between alice and bob; if `isBad`, the buy is signed with a key that has no right to sign. */
  | { readonly kind: 'match'; readonly steps: number; readonly isBad: boolean }
  /** Buys that rest below the price and expire together, one second later. */
  | { readonly kind: 'expire'; readonly count: number }
  /** A funding update; if `isBad`, of a rate above the market's bound. */
  | { readonly kind: 'fund'; readonly isBad: boolean }
  /** Carol buys with the highest leverage, the price falls by 3 %, and the backstop inherits; then the price is back. */
  | { readonly kind: 'liquidate' }
  /** An action that the contract refuses: alice's position is healthy, and the market is not settling. */
  | { readonly kind: 'inherit' | 'deleverage' | 'finalize' }
  | { readonly kind: 'step' | 'follow' | 'foreign' | 'restart' }
  /** The last blocks are replaced; if `isForeign`, by one with a transaction of the relayer's key that the keeper has not signed. */
  | { readonly kind: 'fork'; readonly depth: number; readonly isForeign: boolean }
  | { readonly kind: 'clock'; readonly ms: number }

const kind = <K extends string>(...names: readonly K[]) => fc.constantFrom(...names)
const rarely = fc.constantFrom(false, false, true)

export const anyFault = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: kind('match'), steps: fc.integer({ min: 1, max: 20 }), isBad: rarely }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('expire'), count: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('fund'), isBad: rarely }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('liquidate') }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('inherit', 'deleverage', 'finalize') }) },
  { weight: 8, arbitrary: fc.record({ kind: kind('step') }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('follow') }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('foreign', 'foreign', 'restart') }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: kind('fork'), depth: fc.integer({ min: 1, max: 8 }), isForeign: rarely }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: kind('clock'), ms: fc.constantFrom(5_000, 3_600_000, -5_000, -3_600_000) }),
  },
) as fc.Arbitrary<Fault>

const stranger = new Wallet(id('stranger'))
const PRICE = 1000
const LOW_PRICE = 970
const SETTLE_LIMIT_MS = 25_000

interface Fences {
  readonly auction: Fence
  readonly settle: Fence
}

interface Traders {
  readonly alice: Trader
  readonly bob: Trader
  readonly carol: Trader
}

export class FaultRun {
  readonly fixture: ChainFixture
  readonly counts: Record<string, number> = {}
  readonly #actions: ActionFixture
  readonly #traders: Traders
  readonly #fences: Fences
  readonly #auction: Auction
  readonly #url: string
  /** Blocks up to this one stay: they contain the deposits. */
  readonly #firstBlock: number
  #settlement!: SettlementFixture
  #badOrders = 0

  private constructor(
    fixture: ChainFixture,
    actions: ActionFixture,
    traders: Traders,
    more: { readonly fences: Fences; readonly url: string; readonly firstBlock: number },
  ) {
    this.fixture = fixture
    this.#actions = actions
    this.#traders = traders
    this.#fences = more.fences
    this.#auction = fixture.auction()
    this.#url = more.url
    this.#firstBlock = more.firstBlock
  }

  /** `url`: of the node that the keeper uses. */
  static async open(fixture: ChainFixture, url: string): Promise<FaultRun> {
    const actions = new ActionFixture(fixture, await fixture.lease('funding:m1'), Date.now)
    await actions.report(PRICE)
    await actions.withBackstop()
    const traders = {
      alice: await fixture.depositor('alice'),
      bob: await fixture.depositor('bob'),
      carol: await fixture.depositor('carol'),
    }
    const fences = { auction: await fixture.lease('auction:m1'), settle: await fixture.lease('settle:m1') }
    const firstBlock = await fixture.chainSide.provider.getBlockNumber()
    const run = new FaultRun(fixture, actions, traders, { fences, url, firstBlock })
    await run.#restart()
    return run
  }

  async take(fault: Fault): Promise<void> {
    const { fixture } = this
    const { alice, bob } = this.#traders
    this.counts[fault.kind] = (this.counts[fault.kind] ?? 0) + 1
    switch (fault.kind) {
      case 'match':
        if (fault.isBad) this.#badOrders++
        await this.match(alice, fault.steps, fault.isBad ? { signer: stranger } : {})
        return
      case 'expire':
        return this.#expire(fault.count)
      case 'fund':
        await this.#actions.updateFunding(PRICE, (fault.isBad ? RATE * 1000n : RATE) as HourlyFunding)
        return
      case 'liquidate':
        return this.#liquidate()
      case 'inherit':
        await this.#actions.inherit(alice, PRICE)
        return
      case 'deleverage':
        await this.#actions.deleverage(alice, bob, 1, PRICE)
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
    await this.#actions.report(PRICE)
    await fixture.place({ ...{ by, side: 'LONG', steps, limit: PRICE }, ...more })
    await fixture.place({ by: this.#traders.bob, side: 'SHORT', steps, limit: PRICE })
    return this.#auction.run(this.#fences.auction)
  }

  /** After a fork the chain's time may be too far behind the price report for a batch. */
  async #matchInTime(by: Trader): Promise<void> {
    const deadline = Date.now() + SETTLE_LIMIT_MS
    while ((await this.match(by, 1)) === null && Date.now() < deadline) await sleep(300)
  }

  async #expire(count: number): Promise<void> {
    const expiration = Math.floor(Date.now() / 1000) + 1
    const { alice: by } = this.#traders
    for (let at = 0; at < count; at++)
      await this.fixture.place({ by, side: 'LONG', steps: 10, limit: 990, expiration })
  }

  async #liquidate(): Promise<void> {
    const { carol } = this.#traders
    await this.match(carol, 20, { leverage: this.fixture.spec.maxLeverage })
    await this.#actions.inherit(carol, LOW_PRICE)
    await this.#actions.report(PRICE)
  }

  /** Nothing may be queued behind it, so it is only queued where its end does not have to be waited for. */
  async #finalize(): Promise<void> {
    await this.#actions.finalize(await this.#actions.report(PRICE))
    await this.#settleAll()
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
    if (replaced > 0) await replaceBlocks(provider, replaced, foreign)
  }

  #usedNonces(): Promise<number> {
    const { chainSide, lane } = this.fixture
    return chainSide.provider.getTransactionCount(lane.relayer)
  }

  // ---------------------------------------------------------------------- laws

  #settleAll(): Promise<void> {
    return this.#settlement.settleAll(this.#fences.settle, SETTLE_LIMIT_MS)
  }

  /** Everything has settled or ended, the database has what the contracts have, and the market still trades. */
  async expectSettled(): Promise<void> {
    const { fixture } = this
    await this.#settleAll()
    await this.#expectTrading()
    await this.#settlement.step(this.#fences.settle)
    await this.#expectExpired()
    await expectConsistent(fixture)
    await expectSameReadModel(fixture)
    const { mode, last_as_of } = await fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
    expect(mode).to.equal('open')
    expect(last_as_of).to.be.closeTo(Date.now(), 30_000)
    await this.#expectAsOnChain()
    await this.#expectFundingOfBatches()
    const { next_nonce } = await fixture.db
      .selectFrom('relayers')
      .select('next_nonce')
      .executeTakeFirstOrThrow()
    expect(await this.#usedNonces()).to.equal(next_nonce)
  }

  /** A batch settles, after at most one void for each order with a bad signature that still rests, and one for a fork's foreign nonce. */
  async #expectTrading(): Promise<void> {
    for (let left = this.#badOrders + 1; ; left--) {
      await this.#matchInTime(this.#traders.alice)
      await this.#settleAll()
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
    await this.#auction.run(this.#fences.auction)
    const ended = (await this.fixture.orders()).filter(({ expiration }) => expiration !== 0)
    expect(ended.filter(({ status }) => status !== 'EXPIRED').map(({ orderId }) => orderId)).to.deep.equal([])
  }

  async #expectAsOnChain(): Promise<void> {
    const { fixture } = this
    const { db, chainSide } = fixture
    const bank = MarginBank__factory.connect(chainSide.shared.marginBank, chainSide.provider)
    const trading = fixture.trading()
    const mined = (await fixture.actions()).filter(({ status }) => status === 'MINED')
    expect(mined.map(({ action_id }) => action_id)).to.deep.equal(mined.map((_, at) => at + 1))
    expect((await trading.clock()).actionId).to.equal(BigInt(mined.length))
    const { fundingIndex } = await trading.lastReference()
    expect((await this.#actions.funding()).index).to.equal(fundingIndex)
    const users = await db.selectFrom('users').select(['user_id', 'address']).execute()
    for (const { user_id, address } of users) {
      const { free } = await bank.account(address)
      const own = db.selectFrom('accounts').select('free').where('user_id', '=', user_id)
      expect((await own.executeTakeFirst())?.free ?? 0n, `free of ${user_id}`).to.equal(free)
      const { size, entryNotional, margin } = await trading.position(address)
      const held = db.selectFrom('positions').selectAll().where('user_id', '=', user_id)
      const row = await held.executeTakeFirst()
      expect(
        [BigInt(row?.size ?? 0), row?.entry_notional ?? 0n, row?.folded_margin ?? 0n],
        `position of ${user_id}`,
      ).to.deep.equal([size, entryNotional, margin + size * fundingIndex])
    }
    expect(users.map(({ address }) => address)).to.include(addressOf(this.#traders.carol.wallet))
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
