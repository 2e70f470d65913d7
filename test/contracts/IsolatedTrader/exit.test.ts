import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { audit } from '../../support/audit.ts'
import {
  binaryExchange,
  caller,
  chain,
  type Exchange,
  fieldsOf,
  futureExchange,
  nextSecond,
  perpetualExchange,
  settle,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import {
  actionOf,
  DAY,
  finalize,
  inherit,
  LISTING_WINDOW,
  pass,
  SILENCE,
  tick,
  trade,
} from '../../support/risk.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const carol = wallet('carol')
const dave = wallet('dave')
const everyone = [alice, bob, carol, dave]

interface Scene {
  exchange: Exchange
}

const fresh = async (fixture: () => Promise<Exchange>): Promise<Exchange> =>
  (await chain()).networkHelpers.loadFixture(fixture)

const freeOf = async ({ exchange }: Scene, of: Wallet): Promise<bigint> =>
  (await exchange.bank.account(of.address)).free

/** Stores a report as anyone may, in the second in which it is observed. */
async function poke(
  { exchange }: Scene,
  price: bigint,
  change: { observedAt?: number; signers?: Wallet[] } = {},
) {
  const { report } = await actionOf(exchange, { price, ...change })
  await tick(exchange)
  return exchange.trader.connect(await caller(exchange, dave)).poke(report)
}

/** A day of silence after a request, and the freeze. */
async function freeze({ exchange }: Scene): Promise<void> {
  await exchange.trader.connect(await caller(exchange, dave)).requestFreeze()
  await pass(exchange, SILENCE + 3)
  await exchange.trader.connect(await caller(exchange, dave)).freeze()
}

/** Claims for everyone, in this order; returns what each was paid. */
async function claimAll(scene: Scene, order: readonly Wallet[]): Promise<Map<string, bigint>> {
  const paid = new Map<string, bigint>()
  for (const each of order) {
    const before = await freeOf(scene, each)
    if ((await scene.exchange.trader.position(each.address)).size === 0n) continue
    await scene.exchange.trader.connect(await caller(scene.exchange, dave)).claim(each.address)
    paid.set(each.address, (await freeOf(scene, each)) - before)
  }
  return paid
}

describe('freeze', () => {
  const scene = {} as Scene
  beforeEach(async () => {
    scene.exchange = await fresh(perpetualExchange)
    await trade(scene.exchange, alice, bob, { steps: 1000, price: 1000, leverage: 5 })
  })
  afterEach(() => audit(scene.exchange))
  const asDave = async () => scene.exchange.trader.connect(await caller(scene.exchange, dave))

  it('when a day has passed in silence, anyone may; a second before, nobody', async () => {
    const { exchange } = scene
    const trader = await asDave()
    await trader.requestFreeze()
    const { requestedAt } = await trader.wind()
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(Number(requestedAt) / 1000 + DAY)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeEarly')
    await time.setNextBlockTimestamp(Number(requestedAt) / 1000 + DAY + 1)
    const { actionId } = await trader.clock()
    await expect(trader.freeze()).to.emit(trader, 'MarketFrozen')
    expect((await trader.clock()).actionId).to.equal(actionId + 1n)
    expect((await trader.parameters()).mode).to.equal(4n)
    expect((await trader.wind()).price).to.equal(e18('100'))
  })

  it('when nobody has asked', async () => {
    const trader = await asDave()
    await pass(scene.exchange, 2 * SILENCE)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeNotRequested')
  })

  it('when the operator gave a heartbeat in between, the request is void and has to be made again', async () => {
    const { exchange } = scene
    const trader = await asDave()
    await trader.requestFreeze()
    await pass(exchange, SILENCE - 10)
    await exchange.trader.heartbeat()
    await pass(exchange, 100)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeRequestVoid')
    await freeze(scene)
    expect((await trader.wind()).endedAt).to.not.equal(0n)
  })

  it('when the operator settled a batch in between, likewise', async () => {
    const trader = await asDave()
    await trader.requestFreeze()
    await pass(scene.exchange, 100)
    await trade(scene.exchange, alice, bob, { steps: 1000, price: 1000, leverage: 5 })
    await pass(scene.exchange, SILENCE)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeRequestVoid')
  })

  it('when a request stands, another does not restart its clock', async () => {
    const trader = await asDave()
    await trader.requestFreeze()
    await pass(scene.exchange, 100)
    await expect(trader.requestFreeze()).to.be.revertedWithCustomError(trader, 'FreezeAlreadyRequested')
  })

  it('when the last action is as of a moment to come, it does not make void what was asked after it', async () => {
    const { exchange } = scene
    const { spec } = exchange
    const asOf = (await nextSecond(exchange)) * 1000 + 2000
    await settle(exchange, {
      price: 1000,
      asOf: asOf as never,
      fills: [
        { by: alice, side: 'LONG', fill: 1 },
        { by: bob, side: 'SHORT', fill: 1 },
      ],
    })
    const trader = await asDave()
    await trader.requestFreeze()
    expect((await trader.wind()).requestedAt).to.equal(BigInt(asOf))
    await pass(exchange, SILENCE + 3)
    await trader.freeze()
    expect(spec.kind).to.equal('perpetual')
  })

  it('when frozen, nothing else happens in the market', async () => {
    await freeze(scene)
    const { exchange } = scene
    const { trader, admin } = exchange
    const ended = (call: Promise<unknown>) =>
      expect(call).to.be.revertedWithCustomError(trader, 'MarketEnded')
    await ended(trader.heartbeat())
    await ended(trader.requestFreeze())
    await ended(trader.freeze())
    await ended(poke(scene, e18('100')))
    const notOpen = (call: Promise<unknown>) =>
      expect(call).to.be.revertedWithCustomError(trader, 'MarketNotOpen')
    await notOpen(trade(exchange, alice, bob, { steps: 1, price: 1000 }))
    await notOpen(inherit(exchange, alice, { price: e18('100') }))
    await notOpen(finalize(exchange, { price: e18('100') }))
    const parameters = fieldsOf(await trader.parameters())
    const later = BigInt(await nextSecond(exchange)) * 1000n + 10n * 86_400_000n
    await expect(trader.connect(admin).scheduleParameters(parameters, later)).to.be.revertedWithCustomError(
      trader,
      'ModeFinal',
    )
    await expect(trader.connect(admin).scheduleMode(0, later)).to.be.revertedWithCustomError(
      trader,
      'ModeFinal',
    )
    await expect(trader.connect(admin).restrictMode(1)).to.be.revertedWithCustomError(
      trader,
      'ModeNotStricter',
    )
  })

  it('when parameters were waiting, they wait for ever', async () => {
    const { exchange } = scene
    const { trader, admin } = exchange
    const fields = fieldsOf(await trader.parameters())
    const later = BigInt(await nextSecond(exchange)) * 1000n + 5n * 86_400_000n
    await trader.connect(admin).scheduleParameters({ ...fields, takerFee: 1n }, later)
    await freeze(scene)
    expect((await trader.pendingChange()).parametersFrom).to.equal(0n)
    expect((await trader.parameters()).takerFee).to.equal(fields.takerFee)
  })

  describe('at the newest price known', () => {
    it('when a newer report was poked, at that', async () => {
      await pass(scene.exchange, 60)
      await expect(poke(scene, e18('103'))).to.emit(scene.exchange.trader, 'PricePoked')
      await freeze(scene)
      expect((await scene.exchange.trader.wind()).price).to.equal(e18('103'))
    })

    it('when the operator has used a newer one since, at that', async () => {
      await pass(scene.exchange, 60)
      await poke(scene, e18('103'))
      await trade(scene.exchange, alice, bob, { steps: 1000, price: 1020, leverage: 5 })
      await freeze(scene)
      expect((await scene.exchange.trader.wind()).price).to.equal(e18('102'))
    })

    it('when the poked report is older than the last one, leaps, is stale, to come, or not signed', async () => {
      const { exchange } = scene
      const { trader, oracle } = exchange
      const { observedAt } = await trader.lastReference()
      const refused = (call: Promise<unknown>, error: string) =>
        expect(call).to.be.revertedWithCustomError(trader, error)
      await refused(poke(scene, e18('100'), { observedAt: Number(observedAt) - 1 }), 'ReportOlder')
      await refused(poke(scene, e18('101'), { observedAt: Number(observedAt) }), 'ReportConflict')
      await refused(poke(scene, e18('150')), 'ReportMoveTooLarge')
      await poke(scene, e18('110'))
      // Measured from what was poked, too.
      await refused(poke(scene, e18('95')), 'ReportMoveTooLarge')
      await refused(
        poke(scene, e18('110'), { observedAt: (await nextSecond(exchange)) * 1000 + 2001 }),
        'ReportAhead',
      )
      const old = (await nextSecond(exchange)) * 1000
      await pass(exchange, 20)
      await refused(poke(scene, e18('110'), { observedAt: old }), 'ReportStale')
      const signers = [wallet('mallory'), wallet('mallet')].sort((a, b) =>
        a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1,
      )
      await expect(poke(scene, e18('110'), { signers })).to.be.revertedWithCustomError(
        oracle,
        'SignerUnknown',
      )
    })

    it('when poked, no action is judged by it', async () => {
      await pass(scene.exchange, 60)
      await poke(scene, e18('103'))
      expect((await scene.exchange.trader.lastReference()).oraclePrice).to.equal(e18('100'))
    })
  })
})

describe('claims', () => {
  const scene = {} as Scene
  afterEach(() => audit(scene.exchange))
  const asDave = async () => scene.exchange.trader.connect(await caller(scene.exchange, dave))

  /**
   * Alice bought 1 at 100 with 5, Carol 1 at 100 with 100; Bob sold 2 with 40. At 90: Alice owes 5, Carol has 90, Bob 60; the
   * pool holds 145 for 150.
   */
  const insolvent = async (): Promise<Exchange> => {
    const exchange = await perpetualExchange()
    await settle(exchange, {
      price: 1000,
      fills: [
        { by: alice, side: 'LONG', fill: 1000, leverage: 20 },
        { by: carol, side: 'LONG', fill: 1000, leverage: 1 },
        { by: bob, side: 'SHORT', fill: 2000, leverage: 5 },
      ],
    })
    await pass(exchange, 60)
    await poke({ exchange }, e18('90'))
    await freeze({ exchange })
    return exchange
  }

  beforeEach(async () => {
    scene.exchange = await fresh(insolvent)
  })

  it('when deficits are listed, one haircut is shared by value, whoever comes first', async () => {
    const { connection } = scene.exchange
    const trader = await asDave()
    await expect(trader.listInsolvent(everyone.map(({ address }) => address)))
      .to.emit(trader, 'InsolventListed')
      .withArgs(alice.address, e18('5'))
    await pass(scene.exchange, LISTING_WINDOW)
    const snapshot = await connection.networkHelpers.takeSnapshot()
    const paid = await claimAll(scene, everyone)
    await audit(scene.exchange)
    await snapshot.restore()
    expect(await claimAll(scene, [...everyone].reverse())).to.deep.equal(new Map([...paid].reverse()))
    // 145 / 150 of each.
    expect([...paid]).to.deep.equal(
      [
        [bob.address, e18('58')],
        [carol.address, e18('87')],
      ].sort(
        (a, b) =>
          everyone.findIndex((e) => e.address === a[0]) - everyone.findIndex((e) => e.address === b[0]),
      ),
    )
    expect((await scene.exchange.bank.market(scene.exchange.spec.trader)).pool).to.equal(0n)
  })

  it('when an account is listed twice, it is counted once', async () => {
    const trader = await asDave()
    await trader.listInsolvent([alice.address, alice.address])
    await trader.listInsolvent([alice.address])
    expect((await trader.wind()).deficit).to.equal(e18('5'))
  })

  it('when an account is solvent or empty, it is passed over', async () => {
    const trader = await asDave()
    await trader.listInsolvent([bob.address, carol.address, dave.address])
    expect((await trader.wind()).deficit).to.equal(0n)
    expect((await trader.position(bob.address)).size).to.equal(-2000n)
  })

  it('when the three days are over, deficits are no more counted; until then, nothing is paid', async () => {
    const { exchange } = scene
    const trader = await asDave()
    const { endedAt } = await trader.wind()
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(Number(endedAt) / 1000 + LISTING_WINDOW)
    await expect(trader.claim(bob.address)).to.be.revertedWithCustomError(trader, 'ClaimEarly')
    await time.setNextBlockTimestamp(Number(endedAt) / 1000 + LISTING_WINDOW + 1)
    await expect(trader.listInsolvent([alice.address])).to.be.revertedWithCustomError(trader, 'ListingOver')
    await trader.claim(bob.address)
  })

  it('when claimed twice, or without anything to claim', async () => {
    const trader = await asDave()
    await trader.listInsolvent([alice.address])
    await pass(scene.exchange, LISTING_WINDOW)
    await trader.claim(bob.address)
    for (const each of [bob, alice, dave]) {
      await expect(trader.claim(each.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
    }
  })

  it('when nobody listed the insolvent, the pool pays what it has and owes the rest', async () => {
    const trader = await asDave()
    await pass(scene.exchange, LISTING_WINDOW)
    // 60 and 90 are due without a haircut, 145 are there.
    await expect(trader.claim(carol.address))
      .to.emit(trader, 'Claimed')
      .withArgs(carol.address, e18('90'), e18('90'), 0n)
    await expect(trader.claim(bob.address))
      .to.emit(trader, 'Claimed')
      .withArgs(bob.address, e18('60'), e18('55'), e18('5'))
    expect(await trader.unpaidClaim(bob.address)).to.equal(e18('5'))
    await expect(trader.claim(bob.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')

    // Somebody makes up for it.
    await trader.coverDeficit(e18('6'))
    await expect(trader.claim(bob.address)).to.emit(trader, 'Claimed').withArgs(bob.address, 0n, e18('5'), 0n)
    expect(await trader.unpaidClaim(bob.address)).to.equal(0n)
  })

  it('when the deficit is covered before the haircut is fixed, everyone is paid in full', async () => {
    const trader = await asDave()
    await trader.listInsolvent([alice.address])
    await trader.coverDeficit(e18('5'))
    await pass(scene.exchange, LISTING_WINDOW)
    expect([...(await claimAll(scene, [bob, carol])).values()]).to.deep.equal([e18('60'), e18('90')])
  })

  it('when more is covered than is owed, nobody gets more than is due', async () => {
    const trader = await asDave()
    await trader.listInsolvent([alice.address])
    await trader.coverDeficit(e18('50'))
    await pass(scene.exchange, LISTING_WINDOW)
    expect([...(await claimAll(scene, [bob, carol])).values()]).to.deep.equal([e18('60'), e18('90')])
  })

  it('when what covers it is nothing, or not free', async () => {
    const { exchange } = scene
    const trader = await asDave()
    await expect(trader.coverDeficit(0)).to.be.revertedWithCustomError(trader, 'AmountZero')
    const poor = exchange.trader.connect(await caller(exchange, wallet('poor')))
    await expect(poor.coverDeficit(1)).to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
    // What is pending backs batches, not gifts.
    const bank = exchange.bank.connect(await caller(exchange, dave))
    await bank.requestWithdrawal(await freeOf(scene, dave))
    await expect(trader.coverDeficit(1)).to.be.revertedWithCustomError(
      exchange.bank,
      'FreeBalanceInsufficient',
    )
  })
})

describe('while the market lives', () => {
  it('when it has not ended, nothing is listed, covered or claimed', async () => {
    const exchange = await fresh(perpetualExchange)
    const { trader } = exchange
    const early = (call: Promise<unknown>) =>
      expect(call).to.be.revertedWithCustomError(trader, 'MarketNotEnded')
    await early(trader.listInsolvent([alice.address]))
    await early(trader.coverDeficit(1))
    await early(trader.claim(alice.address))
  })

  it('when the caller of a heartbeat is not the operator', async () => {
    const exchange = await fresh(perpetualExchange)
    const trader = exchange.trader.connect(await caller(exchange, dave))
    await expect(trader.heartbeat()).to.be.revertedWithCustomError(trader, 'NotOperator')
  })
})

describe('finalizeMarket', () => {
  const scene = {} as Scene
  afterEach(() => audit(scene.exchange))
  const SETTLING = 3

  /** Settling was announced a day ago. */
  async function settling(exchange: Exchange): Promise<void> {
    const later = (await nextSecond(exchange)) * 1000 + DAY * 1000
    await exchange.trader.connect(exchange.admin).scheduleMode(SETTLING, later)
    await pass(exchange, DAY)
  }

  async function opened(fixture: () => Promise<Exchange>, price: number): Promise<void> {
    scene.exchange = await fresh(fixture)
    await trade(scene.exchange, alice, bob, { steps: 1000, price, leverage: 1 })
  }

  it('when the final price is in, everyone is paid by it', async () => {
    await opened(futureExchange, 1000)
    await settling(scene.exchange)
    const { trader } = scene.exchange
    // Bought and sold 10 at 500, at 1x.
    await expect(finalize(scene.exchange, { price: e18('600') })).to.emit(trader, 'MarketFinalized')
    await pass(scene.exchange, LISTING_WINDOW)
    expect([...(await claimAll(scene, [alice, bob])).values()]).to.deep.equal([e18('6000'), e18('4000')])
  })

  it('when a binary market ends at 0 or at 1, all of it goes to one side', async () => {
    for (const [price, yes, no] of [
      [0n, 0n, e18('1000')],
      [e18('1'), e18('1000'), 0n],
    ] as const) {
      await opened(binaryExchange, 300)
      await settling(scene.exchange)
      await finalize(scene.exchange, { price })
      await pass(scene.exchange, LISTING_WINDOW)
      const [winner, loser] = yes > 0n ? [alice, bob] : [bob, alice]
      expect((await claimAll(scene, [winner])).get(winner.address)).to.equal(yes + no)
      const { trader } = scene.exchange
      await expect(trader.claim(loser.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
    }
  })

  it('when a binary price is neither, or a future price out of bounds', async () => {
    await opened(binaryExchange, 300)
    await settling(scene.exchange)
    for (const price of [e18('0.5'), 1n, e18('1') - 1n, e18('1') + 1n]) {
      await expect(finalize(scene.exchange, { price })).to.be.revertedWithCustomError(
        scene.exchange.trader,
        'FinalPriceInvalid',
      )
    }
    await opened(futureExchange, 1000)
    await settling(scene.exchange)
    const { finalLow, finalHigh } = await scene.exchange.trader.grid()
    for (const price of [finalHigh + 1n, ...(finalLow > 0n ? [finalLow - 1n] : [])]) {
      await expect(finalize(scene.exchange, { price })).to.be.revertedWithCustomError(
        scene.exchange.trader,
        'FinalPriceInvalid',
      )
    }
  })

  it('when the report is of the ordinary feed, or stale', async () => {
    await opened(futureExchange, 1000)
    await settling(scene.exchange)
    const { trader, oracle } = scene.exchange
    const { report, asOf, actionId } = await actionOf(scene.exchange, { price: e18('600') })
    await tick(scene.exchange)
    await expect(trader.finalizeMarket(actionId, asOf, report)).to.be.revertedWithCustomError(
      oracle,
      'SignerUnknown',
    )
    await expect(
      finalize(scene.exchange, { price: e18('600'), observedAt: asOf - 60_000 }),
    ).to.be.revertedWithCustomError(trader, 'ReportStale')
  })

  it('when the market is not settling, or is a perpetual', async () => {
    await opened(futureExchange, 1000)
    await expect(finalize(scene.exchange, { price: e18('600') })).to.be.revertedWithCustomError(
      scene.exchange.trader,
      'MarketNotOpen',
    )
    await opened(perpetualExchange, 1000)
    await settling(scene.exchange)
    await expect(finalize(scene.exchange, { price: e18('100') })).to.be.revertedWithCustomError(
      scene.exchange.trader,
      'MarketWithoutExpiry',
    )
  })

  it('when the operator leaves before the final price, the market can still be frozen', async () => {
    await opened(futureExchange, 1000)
    await settling(scene.exchange)
    await freeze(scene)
    await pass(scene.exchange, LISTING_WINDOW)
    expect([...(await claimAll(scene, [alice, bob])).values()]).to.deep.equal([e18('5000'), e18('5000')])
  })
})
