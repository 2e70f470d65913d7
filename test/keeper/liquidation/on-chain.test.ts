/** Every step of the ladder, decided by the keeper, executed by the real contracts and followed by the indexer. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { LiquidationChanged } from '../../../domain/journal/liquidation-row.ts'
import { CANCEL_GRACE } from '../../../domain/settlement/durations.ts'
import type { HourlyFunding } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { ActionFixture, RATE } from '../support/action-fixture.ts'
import { type ChainFixture, useChain } from '../support/chain-fixture.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { startMarketLoop } from '../support/market-loop.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'
import { openTrading, type Trading } from '../support/trading.ts'

/** A long at 1,000 with leverage 20 is below the threshold at 975, below two thirds of MMR at 960, and worth less than nothing at 945. */
/** Of a restriction, and a second for the granularity of block time. */
const RESTRICTION_NOTICE_MS = CANCEL_GRACE + 1_100

describe('the steps of a liquidation on the chain', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let trading: Trading
  let fixture: ChainFixture
  let actions: ActionFixture
  let turn: () => Promise<void>

  beforeEach(async () => {
    trading = await openTrading(chain())
    fixture = trading.fixture
    actions = new ActionFixture(fixture)
    turn = turnsOf()
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await fixture.close()
  })

  /** The turns of a keeper that starts. */
  const turnsOf = (): (() => Promise<void>) => startMarketLoop(fixture).turn

  const settle = async () => {
    await fixture.settle(trading.settling)
    await fixture.follow()
  }
  const report = async (ticks: number) => {
    await sleep(150)
    await actions.report(ticks)
  }
  async function deal(long: Trader, short: Trader, steps: number, leverage = 20): Promise<void> {
    await fixture.place({ by: long, side: 'LONG', steps, limit: 1000, leverage })
    await fixture.place({ by: short, side: 'SHORT', steps, limit: 1000, leverage: 5 })
    await turn()
    await turn()
  }
  const steps = async () => {
    const rows = (await fixture.rows('liquidation_changed')) as LiquidationChanged[]
    return rows.map(({ step }) => step)
  }

  const running = async () => (await fixture.db.selectFrom('liquidations').selectAll().execute()).length

  /** The positions and free balances of the database are those of the contracts. */
  async function expectAsOnChain(): Promise<void> {
    const rows = await withMirror(fixture.db)
      .selectFrom('positions')
      .innerJoin('users', 'users.user_id', 'positions.user_id')
      .selectAll()
      .execute()
    for (const { address, size, matched_size, entry_notional } of rows) {
      const position = await fixture.trading().position(address)
      expect([size, matched_size, entry_notional], address).to.deep.equal([
        ...[Number(position.size), Number(position.size), position.entryNotional],
      ])
    }
    expect(rows.reduce((sum, { size }) => sum + size, 0)).to.equal(0)
    const mismatches = await fixture.db.selectFrom('settlement_mismatches').selectAll().execute()
    expect(mismatches).to.deep.equal([])
    expect(await fixture.mode()).to.equal('open')
  }

  it('when a forced order fills in two batches, the contract settles both, and the stored order is filled', async () => {
    const { alice, bob, carol } = trading
    await deal(alice, bob, 100)
    await settle()
    await fixture.place({ by: carol, side: 'LONG', steps: 60, limit: 980 })
    await turn()
    await report(975)
    await turn()
    await fixture.place({ by: carol, side: 'LONG', steps: 60, limit: 980 })
    await turn()
    await settle()
    await turn()
    const [order] = (await fixture.orders()).filter(({ forced }) => forced)
    expect(order).to.include({ status: 'FILLED', filled: 100 })
    expect(await steps()).to.deep.equal(['started', 'forced', 'ended'])
    const settled = (await fixture.rows('part_settled')).flatMap(({ fills }) => fills)
    const forced = settled.filter((fill: { forced?: true }) => fill.forced)
    expect(
      forced.map(({ order_id, matched }: { order_id: string; matched: boolean }) => [order_id, matched]),
    ).to.deep.equal([
      [order?.orderId, true],
      [order?.orderId, true],
    ])
    await expectAsOnChain()
  })

  it('when a funding update in front of a forced fill is dropped, the batch is matched again without it and settles', async () => {
    const { alice, bob, carol } = trading
    await deal(alice, bob, 100)
    await settle()
    await fixture.place({ by: carol, side: 'LONG', steps: 100, limit: 980 })
    await turn()
    await report(975)
    const dropped = await actions.updateFunding(975, (RATE * 1000n) as HourlyFunding)
    await turn()
    const forced = (await fixture.orders()).find((order) => order.forced)
    expect(forced).to.include({ settling: 100 })
    await settle()
    await turn()
    const [row] = await fixture.rows('action_dropped')
    expect(row).to.include({ queue_no: dropped })
    expect(row.rematched).to.include.members([alice.account, carol.account])
    expect(await steps()).to.deep.equal(['started', 'forced', 'ended'])
    expect(await fixture.rows('batch_voided')).to.deep.equal([])
    expect(await fixture.position(alice)).to.equal(0n)
    await expectAsOnChain()
  })

  it('when the contract is in mode cancel-only, it settles the batch of a forced order beside orders that cross and wait', async () => {
    const { alice, bob, carol, dave } = trading
    const { admin } = chain()
    await (await fixture.trading().connect(admin).restrictMode(1)).wait()
    await deal(alice, bob, 100)
    await settle()
    // The notice of a restriction.
    await sleep(RESTRICTION_NOTICE_MS)
    await fixture.follow()
    await fixture.place({ by: carol, side: 'LONG', steps: 150, limit: 980 })
    await fixture.place({ by: dave, side: 'SHORT', steps: 20, limit: 970 })
    await report(975)
    await turn()
    await settle()
    await turn()
    expect(await steps()).to.deep.equal(['started', 'forced', 'ended'])
    expect(await fixture.position(alice)).to.equal(0n)
    expect(await fixture.position(dave)).to.equal(0n)
    await expectAsOnChain()
  })

  it('when the ratio is below two thirds of MMR, the backstop inherits; when it cannot, the rest is deleveraged', async () => {
    const { alice, bob, carol, dave } = trading
    await actions.withBackstop()
    await deal(alice, bob, 100)
    await deal(carol, dave, 100_000)
    await settle()
    await report(960)
    await turn()
    expect(await steps()).to.deep.equal([...['started', 'deleverage_queued', 'started', 'inherit_queued']])
    await settle()
    await turn()
    for (let turns = 1; (await running()) > 0 && turns <= 5; turns++) {
      await report(960)
      await turn()
      await settle()
      await turn()
    }
    expect((await steps()).filter((step) => step === 'ended')).to.have.length(2)
    await expectAsOnChain()
  })

  it('when many positions lose their equity at once, each is closed against the best counterparties, one action behind the other', async () => {
    const { alice, bob, carol, dave } = trading
    await deal(alice, bob, 100)
    await deal(carol, dave, 300)
    await settle()
    await report(945)
    await turn()
    const queued = (await fixture.actions()).filter(({ kind }) => kind === 'deleverage')
    expect(queued).to.have.length(2)
    await settle()
    await turn()
    expect(await steps()).to.deep.equal([
      ...['started', 'deleverage_queued', 'started', 'deleverage_queued', 'ended', 'ended'],
    ])
    for (const trader of [alice, carol]) expect(await fixture.position(trader)).to.equal(0n)
    await expectAsOnChain()
  })

  for (const [step, ticks] of [
    ['a forced fill', 975],
    ['an inheritance', 960],
    ['a deleveraging', 945],
  ] as const) {
    it(`when the block of ${step} leaves the chain, the same transaction is mined again and nothing happens twice`, async () => {
      const { alice, bob, carol } = trading
      if (ticks === 960) await actions.withBackstop()
      await deal(alice, bob, 100)
      await settle()
      if (ticks === 975) await fixture.place({ by: carol, side: 'LONG', steps: 100, limit: 980 })
      await turn()
      await report(ticks)
      await turn()
      const before = await saveChain(chain())
      await settle()
      await turn()
      const after = await steps()
      await restoreChain(chain(), before)
      await chain().provider.send('evm_mine', [])
      await fixture.follow()
      await turn()
      turn = turnsOf()
      await turn()
      await settle()
      await turn()
      expect(await steps()).to.deep.equal(after)
      expect(await fixture.position(alice)).to.equal(0n)
      await expectAsOnChain()
    })
  }
})
