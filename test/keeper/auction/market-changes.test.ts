/**
 * Changes of a market between two batches, on a real chain: the batch that was matched before the change settles under the old terms, and
 * the one after it under the new ones. No batch reverts.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { type Millis, ONE, type Rate } from '../../../domain/units.ts'
import { parametersOf, REPORT_LIMITS } from '../../../stack/deploy.ts'
import { perpetual } from '../../support/markets.ts'
import { ChainFixture, type Deployed, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { type Placement, RULES, type Trader } from '../support/market-fixture.ts'

const DAY_MS = 86_400_000
const [OPEN, CANCEL_ONLY, HALTED] = [0, 1, 2]

class ChangingMarket {
  readonly fixture: ChainFixture
  readonly traders: readonly Trader[]
  readonly #deployed: Deployed
  readonly #auction: Auction
  readonly #fences: { readonly auction: Fence; readonly settle: Fence }
  #observedAt = 0

  private constructor(
    deployed: Deployed,
    fixture: ChainFixture,
    traders: readonly Trader[],
    fences: { readonly auction: Fence; readonly settle: Fence },
  ) {
    this.#deployed = deployed
    this.fixture = fixture
    this.traders = traders
    this.#fences = fences
    const memory = createMarketMemory({ ...RULES, kind: fixture.spec.kind })
    this.#auction = createAuction(fixture.turnPorts(), fixture.spec, memory)
  }

  static async open(deployed: Deployed): Promise<ChangingMarket> {
    const fixture = await ChainFixture.openOn(deployed)
    // It stands still: on a busy machine the test may take longer than the notice of a restriction.
    const clock = { value: 0, now: () => clock.value as Millis }
    Object.assign(fixture, { clock })
    const traders = [await fixture.depositor('alice'), await fixture.depositor('bob')]
    const fences = { auction: await fixture.lease('auction:m1'), settle: await fixture.lease('settle:m1') }
    const market = new ChangingMarket(deployed, fixture, traders, fences)
    await market.syncClock()
    return market
  }

  get contract() {
    return this.fixture.trading().connect(this.#deployed.admin)
  }

  async headTime(): Promise<number> {
    const block = await this.#deployed.provider.getBlock('latest')
    return (block?.timestamp ?? 0) * 1000
  }

  /** The database's clock is the chain's. */
  async syncClock(): Promise<void> {
    this.fixture.clock.value = await this.headTime()
  }

  /** Mines a block at this time. */
  async travelTo(ms: number): Promise<void> {
    await this.#deployed.provider.send('evm_setNextBlockTimestamp', [Math.ceil(ms / 1000)])
    await this.#deployed.provider.send('evm_mine', [])
    await this.syncClock()
  }

  /** A price of 1000 ticks, observed now. */
  async report(): Promise<void> {
    this.#observedAt = Math.max(this.#observedAt + 1, this.fixture.clock.value)
    await this.fixture.report(1000, this.#observedAt)
  }

  /** Announces a change of the parameters for a day ahead. Returns its time. */
  async schedule(change: object): Promise<number> {
    const listed = parametersOf(this.fixture.spec, { ...REPORT_LIMITS, moveBase: ONE as Rate })
    const activeFrom = (await this.headTime()) + DAY_MS + 20_000
    await (await this.contract.scheduleParameters({ ...listed, ...change }, activeFrom)).wait()
    await this.fixture.follow()
    return activeFrom
  }

  /** Alice buys, bob sells. Returns the ids. */
  async pair(
    more: { steps?: number; buy?: Partial<Placement>; sell?: Partial<Placement> } = {},
  ): Promise<string[]> {
    const [alice, bob] = this.traders as [Trader, Trader]
    const both = { steps: more.steps ?? 20, limit: 1000 }
    const buy = await this.fixture.place({ by: alice, side: 'LONG', ...both, ...more.buy })
    return [buy, await this.fixture.place({ by: bob, side: 'SHORT', ...both, ...more.sell })]
  }

  async run(): Promise<number | null> {
    await this.fixture.readHead()
    return this.#auction.run()
  }

  /** Runs the auction as of the chain's time, on a price of that time. */
  async runNow(): Promise<number | null> {
    await this.syncClock()
    await this.report()
    return this.run()
  }

  /** Runs the auction until it matches, or has nothing more to end. */
  async runOut(): Promise<number | null> {
    for (let turn = 0; turn < 4; turn++) {
      const batch = await this.runNow()
      if (batch !== null) return batch
    }
    return null
  }

  async settle(): Promise<void> {
    await this.fixture.follow()
    await this.fixture.settle(this.#fences.settle)
    const statuses = (await this.fixture.actions()).map(({ status }) => status)
    expect(statuses.filter((status) => status !== 'MINED')).to.deep.equal([])
  }

  /** Matches a pair just before the change and settles it just behind it. */
  async tradeAcross(activeFrom: number): Promise<void> {
    await this.report()
    await this.pair()
    await this.travelTo(activeFrom - 1_000)
    await this.report()
    expect(await this.run()).to.equal(1)
    const [action] = await this.fixture.actions()
    expect(action?.as_of).to.be.below(activeFrom)
    await this.travelTo(activeFrom)
    await this.settle()
    await this.report()
  }

  batch(batchId: number) {
    return this.fixture.db
      .selectFrom('batches')
      .selectAll()
      .where('batch_id', '=', batchId)
      .executeTakeFirstOrThrow()
  }
}

describe('changes of a market between two batches', function () {
  this.timeout(300_000)
  const chain = useChain(perpetual)

  async function across(change: object): Promise<ChangingMarket> {
    const market = await ChangingMarket.open(chain())
    await market.tradeAcross(await market.schedule(change))
    return market
  }

  it('when margin requirements rise, a limit that would open below the new one waits, and the next batch settles', async () => {
    const market = await across({ imr: 200_000, mmr: 100_000, maxLeverage: 5 })
    const [buy] = await market.pair({ buy: { limit: 1010 }, sell: { limit: 1005 } })
    expect(await market.run()).to.equal(null)
    expect(await market.fixture.orderOf(buy as string)).to.include({ status: 'OPEN', settling: 0 })
    await market.pair({ buy: { limit: 990 } })
    expect(await market.runNow()).to.equal(2)
    expect((await market.batch(2)).price).to.equal(1000)
    await market.settle()
    expect((await market.contract.parameters()).imr).to.equal(200_000n)
    await market.fixture.close()
  })

  it('when the leverage cap falls, orders above it end with LEVERAGE_CAP, waiting orders too, and all other orders settle', async () => {
    const market = await ChangingMarket.open(chain())
    const activeFrom = await market.schedule({ maxLeverage: 4 })
    await market.report()
    const [alice] = market.traders
    const stop = { by: alice as Trader, side: 'SHORT', type: 'STOP_MARKET', trigger: 900, steps: 20 } as const
    const waiting = await market.fixture.place(stop)
    await market.tradeAcross(activeFrom)
    const [high] = await market.pair({ buy: { leverage: 5 }, sell: { leverage: 4 } })
    expect(await market.runOut()).to.equal(null)
    for (const order of [high, waiting])
      expect(await market.fixture.orderOf(order as string)).to.include({
        ...{ status: 'CANCELLED', statusReason: 'LEVERAGE_CAP', reserved: 0n },
      })
    await market.pair({ buy: { leverage: 4 }, sell: { leverage: 4, limit: 1001 } })
    expect(await market.runNow()).to.equal(2)
    await market.settle()
    expect((await market.contract.parameters()).maxLeverage).to.equal(4n)
    await market.fixture.close()
  })

  it('when the band narrows, a batch clears within the new one', async () => {
    const market = await across({ mtbLong: 1_000, mtbShort: 1_000 })
    await market.pair({ buy: { limit: 1020 }, sell: { limit: 1010 } })
    expect(await market.run()).to.equal(null)
    await market.pair({ buy: { limit: 990 }, sell: { limit: 1001 } })
    expect(await market.runNow()).to.equal(2)
    expect(await market.batch(2)).to.include({ price: 1001, lo: 999, hi: 1001 })
    await market.settle()
    await market.fixture.close()
  })

  for (const [takerFee, does] of [
    [100, 'falls'],
    [2_000, 'rises'],
  ] as const) {
    it(`when the highest taker rate ${does}, reservations are computed at it first, and the next batch charges it`, async () => {
      const market = await ChangingMarket.open(chain())
      const activeFrom = await market.schedule({ takerFee })
      await market.report()
      const [resting] = await market.pair({ buy: { limit: 980 }, sell: { limit: 1030 } })
      const before = await market.fixture.orderOf(resting as string)
      await market.tradeAcross(activeFrom)
      await market.pair()
      expect(await market.runOut()).to.equal(2)
      const charged = (await market.batch(2)).taker_fee
      expect(charged).to.equal(BigInt(takerFee) * 10n ** 12n)
      expect((await market.batch(1)).taker_fee).to.equal(perpetual.takerFee)
      const after = await market.fixture.orderOf(resting as string)
      const feeOf = (taker: bigint) => (980n * perpetual.tick * 20n * perpetual.step * taker) / ONE / ONE
      expect(after.reserved - before.reserved).to.equal(feeOf(charged) - feeOf(perpetual.takerFee))
      await market.settle()
      const { reserved } = await market.fixture.account(market.traders[0] as Trader)
      const orders = (await market.fixture.orders()).filter(
        ({ account }) => account === market.traders[0]?.account,
      )
      expect(reserved).to.equal(orders.reduce((sum, order) => sum + order.reserved + order.held, 0n))
      const stored = await market.fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
      expect([stored.reserved_fee, stored.reserving_after]).to.deep.equal([charged, null])
      await market.fixture.close()
    })
  }

  it('when the rules for reports get tighter, a report that is too old by them makes no batch', async () => {
    const market = await across({ reportMaxAge: 1_000 })
    await market.pair()
    market.fixture.clock.value += 3_000
    expect(await market.run()).to.equal(null)
    expect(await market.runNow()).to.equal(2)
    await market.settle()
    await market.fixture.close()
  })

  for (const [name, mode] of [
    ['cancel_only', CANCEL_ONLY],
    ['halted', HALTED],
  ] as const) {
    it(`when the market is restricted to ${name} and opened again, batches stop and resume at those times`, async () => {
      const market = await ChangingMarket.open(chain())
      await (await market.contract.restrictMode(mode)).wait()
      await market.fixture.follow()
      const { restrictionFrom } = await market.contract.pendingChange()
      await market.tradeAcross(Number(restrictionFrom))
      await market.pair()
      expect(await market.run()).to.equal(null)
      const reopened = (await market.headTime()) + 20_000
      await (await market.contract.scheduleMode(OPEN, reopened)).wait()
      await market.fixture.follow()
      await market.report()
      expect(await market.run()).to.equal(null)
      await market.travelTo(reopened)
      expect(await market.runNow()).to.equal(2)
      await market.settle()
      expect((await market.contract.parameters()).mode).to.equal(0n)
      await market.fixture.close()
    })
  }

  it('when a period without fees runs, batches charge none and reservations stay at the highest rate', async () => {
    const market = await ChangingMarket.open(chain())
    const now = market.fixture.clock.value
    const period = { maker: '0', taker: '0', from: now - 1_000, until: now + 3_600_000 }
    await market.fixture.db
      .updateTable('markets')
      .set({ fee_periods: JSON.stringify([period]) })
      .execute()
    await market.report()
    await market.pair()
    expect(await market.run()).to.equal(1)
    expect((await market.batch(1)).taker_fee).to.equal(0n)
    const held = (await market.fixture.orders()).map((order) => order.held)
    const margin = (1000n * perpetual.tick * 20n * perpetual.step) / ONE / 5n
    for (const each of held) expect(each > margin).to.equal(true)
    await market.settle()
    const [row] = await market.fixture.rows('part_settled')
    expect(row.fills.map(({ fee }: { fee: string }) => fee)).to.deep.equal(['0', '0'])
    await market.fixture.close()
  })
})
