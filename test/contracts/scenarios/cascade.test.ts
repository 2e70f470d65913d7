/**
 * A falling market: liquidations through the book, then the backstop, then counterparties; the remaining positions go through a
 * freeze. domain/ predicts every step, the chain executes it, and the events rebuild the result: three times the same, to the wei.
 */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { COVER_TIME, windowEndOf } from '../../../domain/risk/wind-down.ts'
import { PAUSE_GRACE } from '../../../domain/settlement/durations.ts'
import type { Millis, Quote, Seconds } from '../../../domain/units.ts'
import { addressOf, chain, type Exchange, type FillInput, perpetualExchange } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit, rebuild } from '../support/audit.ts'
import { DifferentialRunner } from '../support/differential-runner.ts'
import { INSOLVENCY_WINDOW, pass, withBackstop } from '../support/risk.ts'

/** The backstop inherits one position of one unit up to 160 per unit, with at most 12 of margin. */
const CAP = e18('160') as Quote
const FUNDS = e18('12')
const DAY = 86_400

const fixture = async (): Promise<Exchange> => {
  const exchange = await perpetualExchange()
  await withBackstop(exchange, CAP, FUNDS)
  return exchange
}

describe('liquidation, backstop, deleveraging, freeze', () => {
  let runner: DifferentialRunner
  let exchange: Exchange
  let alice: Wallet, bob: Wallet, carol: Wallet, dave: Wallet, erin: Wallet, frank: Wallet
  const backstop = () => ({ address: exchange.shared.backstop })
  const sizeOf = (of: { readonly address: string }): number => runner.twin.positionOf(addressOf(of)).size
  /** A liquidation of `fill` steps of a long, bought by `by`. */
  const forced = (of: Wallet, by: Wallet, fill: number): FillInput[] => [
    { by: of, side: 'SHORT', fill, forced: 1n, taker: fill },
    { by, side: 'LONG', fill, taker: 0, leverage: 2 },
  ]

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(fixture)
    ;[alice, bob, carol, dave, erin, frank] = exchange.users as [
      Wallet,
      Wallet,
      Wallet,
      Wallet,
      Wallet,
      Wallet,
    ]
    runner = await DifferentialRunner.of(exchange, CAP)
    // Longs of one unit each at 100 with 5 of margin; shorts of different leverage; a funding rate that leaves uneven amounts.
    await runner.settle(1000, [
      { by: alice, side: 'LONG', fill: 1000, leverage: 20 },
      { by: bob, side: 'LONG', fill: 1000, leverage: 20 },
      { by: carol, side: 'LONG', fill: 1000, leverage: 20 },
      { by: dave, side: 'SHORT', fill: 1800, leverage: 12 },
      { by: erin, side: 'SHORT', fill: 1200, leverage: 3 },
    ])
    await runner.fund(1000, 333_333_333_333_331n, 3_600_000)
    await pass(exchange, 47)
  })

  /** The outcomes of the steps of the fall. */
  async function fall(): Promise<string[]> {
    const steps: string[] = []
    const note = async (step: Promise<string>) => steps.push(await step)
    // Equity 2.3 of 97.3: below 2.25 % + 0.5. A fifth of Alice's position goes to the book; the backstop cannot inherit it yet.
    await note(runner.settle(973, forced(alice, frank, 200), 'forced'))
    await note(runner.inherit(973, alice))
    await pass(exchange, 13)
    // Below maintenance: the backstop inherits the rest of Alice's position; its cap leaves no room for Bob's.
    await note(runner.inherit(966, alice))
    await note(runner.inherit(966, bob))
    // Bob is closed at about 95 against the most leveraged winner, whose position is large enough alone.
    await note(runner.deleverageFully(966, bob))
    await pass(exchange, 7)
    // Carol has no equity: half of the position is closed. Then a price gap: the backstop is insolvent too and half of it is closed.
    await note(runner.deleverage(944, carol, [{ of: erin, steps: 400 }]))
    await pass(exchange, 11)
    await note(runner.deleverage(880, backstop(), [{ of: erin, steps: 300 }]))
    return steps
  }

  it('when the price falls, every step has the outcome and the amounts that domain/ predicts', async () => {
    const before = new Map(runner.holders.map((each) => [each, runner.twin.freeOf(each)]))
    expect(await fall()).to.deep.equal([
      'done',
      'NotLiquidatable',
      'done',
      'CAP_EXCEEDED',
      'done',
      'done',
      'done',
    ])
    // The book took 200, the backstop the rest of Alice's, of which 300 were closed; nothing is left of Bob's; 600 of Carol's.
    expect([alice, bob, carol, frank, backstop()].map(sizeOf)).to.deep.equal([0, 0, 600, 200, 500])
    expect(sizeOf(dave) + sizeOf(erin)).to.equal(-1300)
    const gained = (of: Wallet) => runner.twin.freeOf(addressOf(of)) - (before.get(addressOf(of)) ?? 0n)
    // A deleveraged account is paid nothing; its counterparties are paid.
    expect([gained(bob), gained(carol)]).to.deep.equal([0n, 0n])
    expect(gained(dave) > 0n && gained(erin) > 0n).to.equal(true)
    await audit(exchange)
  })

  it('when the bank was paused just before, no account with equity is liquidated for ten minutes, and then every step has its outcome', async () => {
    await runner.pauseBriefly()
    const early = [
      await runner.settle(973, forced(alice, frank, 200), 'forced'),
      await runner.inherit(966, bob),
      await runner.deleverageFully(966, bob),
    ]
    expect(early).to.deep.equal(early.map(() => 'LiquidationTooSoon'))
    // Carol has no equity.
    expect(await runner.deleverage(944, carol, [{ of: erin, steps: 400 }])).to.equal('done')
    await pass(exchange, PAUSE_GRACE / 1000)
    expect(await fall()).to.deep.equal([
      'done',
      'NotLiquidatable',
      'done',
      'CAP_EXCEEDED',
      'done',
      'done',
      'done',
    ])
    await expectRebuilt()
    await audit(exchange)
  })

  it('when the price falls, the events are emitted in this order and rebuild the books', async () => {
    await fall()
    const { provider } = exchange.connection.ethers
    const logs = await provider.getLogs({ address: exchange.spec.trader, fromBlock: 0 })
    const names = logs.map((log) => exchange.trader.interface.parseLog(log)?.name)
    expect(names.slice(names.indexOf('BatchSettled'))).to.deep.equal([
      'BatchSettled',
      'FundingUpdated',
      'BatchSettled',
      'PositionInherited',
      'BackstopInheritanceFailed',
      'PositionsDeleveraged',
      'PositionsDeleveraged',
      'PositionsDeleveraged',
    ])
    await expectRebuilt()
  })

  it('when positions remain, freeze, reports and claims distribute the pool to the wei, with a pause in between', async () => {
    await fall()
    await runner.freeze()
    const { bank, trader, admin, spec } = exchange
    const insolvent = [addressOf(carol), exchange.shared.backstop]
    await runner.reportInsolvent(runner.holders)
    for (const each of insolvent) expect(runner.twin.positionOf(each).size).to.equal(0)
    expect(runner.twin.books.deficit > 0n).to.equal(true)
    await runner.reportInsolvent(insolvent)

    // Paused on the last day of the report window: no claim is paid until a day after the pause, and no state is half changed.
    await pass(exchange, INSOLVENCY_WINDOW - DAY)
    await bank.connect(admin).pause()
    await pass(exchange, 2 * DAY)
    const { endsAt } = await bank.lastPause()
    const { endedAt } = await trader.windDown()
    const opensAfter = windEndOf(endedAt, endsAt)
    expect(opensAfter).to.equal(Number(endsAt) * 1000 + COVER_TIME)
    const tooEarly = async () => {
      for (const each of [dave, erin, frank]) {
        await expect(trader.claim(each.address))
          .to.be.revertedWithCustomError(trader, 'ClaimEarly')
          .withArgs(opensAfter)
      }
    }
    await tooEarly()
    const early = trader.connect(admin).coverDeficit(1)
    await expect(early).to.be.revertedWithCustomError(bank, 'BankPaused').withArgs(endsAt)
    expect((await trader.windDown()).haircutFixed).to.equal(false)
    await runner.compareBooks('the pause')
    await pass(exchange, DAY)
    expect(await bank.isPaused()).to.equal(false)

    await runner.cover(e18('0.5') + 1n)
    await tooEarly()
    await pass(exchange, COVER_TIME / 1000)
    const pool = runner.twin.books.pool
    for (const each of [erin, frank, dave]) expect(await runner.claim(addressOf(each))).to.equal('done')
    for (const each of runner.holders) expect(await runner.claim(each)).to.equal('NothingToClaim')
    // A haircut, and dust: at most one wei per claim and per deficit.
    const { haircut } = runner.twin.books
    expect(haircut?.pool).to.equal(pool)
    expect(pool < (haircut?.owed ?? 0n)).to.equal(true)
    expect((await bank.market(spec.trader)).pool).to.be.within(0n, 5n)
    await expectRebuilt()
    await audit(exchange)
  })

  const windEndOf = (endedAt: bigint, pauseEndsAt: bigint): Millis =>
    windowEndOf(Number(endedAt) as Millis, false, Number(pauseEndsAt) as Seconds)

  /** Compares the books rebuilt from events with those that domain/ kept. */
  async function expectRebuilt(): Promise<void> {
    const books = await rebuild(exchange)
    const { positions, accounts, pool, fees, deficit, index } = runner.twin.books
    expect([books.pool, books.fees, books.windDown.deficit]).to.deep.equal([pool, fees, deficit])
    for (const each of runner.holders) {
      expect(books.accounts.get(each)?.free).to.equal(accounts.get(each)?.free)
      const [rebuilt, kept] = [books.positions.get(each), positions.get(each)]
      expect(rebuilt, `${each} at index ${index}`).to.deep.equal(kept)
    }
  }
})
