/** Events alone rebuild the contracts' state: after every kind of call, the replayed state is compared with the views. */
import { globSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import type { MarketId } from '../../../domain/units.ts'
import { assignFunctions, ROLES } from '../../../stack/access.ts'
import { deployMarket, feedIdOf } from '../../../stack/deploy.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'
import type { ParametersStruct } from '../../../typechain-types/IsolatedTrader.ts'
import {
  addressOf,
  caller,
  chain,
  type Exchange,
  fieldsOf,
  futureExchange,
  nextSecond,
  pair,
  perpetualExchange,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustLeverage, adjustMargin, setFunding } from '../support/adjust.ts'
import { forwarderOf, signForward } from '../support/forward.ts'
import { replayAndCompare } from '../support/replay.ts'
import {
  actionOf,
  deleverage,
  finalize,
  INSOLVENCY_WINDOW,
  inherit,
  pass,
  passDisputeWindow,
  reportFinal,
  settleMode,
  trade,
  withBackstop,
} from '../support/risk.ts'

const DAY = 86_400
const PRICE = e18('50000')

describe('replaying events', () => {
  let exchange: Exchange
  let alice: Wallet, bob: Wallet, carol: Wallet
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    ;[alice, bob, carol] = (await Promise.all(
      exchange.users.slice(0, 3).map((user) => caller(exchange, user)),
    )) as [Wallet, Wallet, Wallet]
  })

  it('needs only documented events: each is declared in an interface with a NatSpec comment', () => {
    for (const path of globSync('contracts/**/*.sol', { exclude: ['contracts/mocks/**'] })) {
      const lines = readFileSync(path, 'utf8').split('\n')
      for (const [index, line] of lines.entries()) {
        if (!/^ +event /.test(line)) continue
        expect(path, line).to.match(/^contracts.interfaces./)
        expect(lines[index - 1], line).to.match(/^ +(\/\/\/|\*\/)/)
      }
    }
  })

  it('rebuilds a newly deployed market', () => replayAndCompare(exchange))

  it('rebuilds the actions: parts of a batch, funding, failed and successful inheritance, deleveraging', async () => {
    await withBackstop(exchange, e18('1000'), e18('100000'))
    await settle(exchange, { price: 500_000, parts: 2, fills: pair(alice, bob, 1_000, { leverage: 20 }) })
    await replayAndCompare(exchange)
    const { asOf, batchId } = await exchange.trader.clock()
    const observedAt = Number((await exchange.trader.lastReference()).observedAt)
    const second = { part: 2, parts: 2, batchId: Number(batchId), asOf: Number(asOf) as never, observedAt }
    await settle(exchange, { price: 500_000, ...second, fills: pair(carol, bob, 500, { leverage: 20 }) })
    await replayAndCompare(exchange)
    await setFunding(exchange, { price: PRICE, rate: 10n ** 12n })
    await replayAndCompare(exchange)
    await pass(exchange, 600)
    await inherit(exchange, alice, { price: e18('47600') })
    await replayAndCompare(exchange)
    await withBackstop(exchange, e18('1000000'), 0n)
    await inherit(exchange, alice, { price: e18('47600') })
    await deleverage(exchange, carol, [{ of: bob, steps: 100 }], { price: e18('47000') })
    await replayAndCompare(exchange)
  })

  it('rebuilds parameters and modes: scheduled, cancelled, restricted, activated', async () => {
    const { trader, admin } = exchange
    const management = trader.connect(admin)
    const later = async (seconds: number) => ((await nextSecond(exchange)) + seconds) * 1000
    const now = fieldsOf<ParametersStruct>(await trader.parameters())
    await management.scheduleParameters({ ...now, takerFee: 400 }, await later(2 * DAY))
    await replayAndCompare(exchange)
    await management.cancelScheduledParameters()
    await management.scheduleParameters({ ...now, takerFee: 300 }, await later(DAY + 60))
    await management.scheduleMode(1, await later(DAY + 3600))
    await management.restrictMode(1)
    await replayAndCompare(exchange)
    await pass(exchange, 10)
    await setFunding(exchange, { price: PRICE, rate: 0n })
    await replayAndCompare(exchange)
    expect((await trader.parameters()).mode).to.equal(1n)
    await management.scheduleMode(0, await later(DAY + 30))
    await pass(exchange, DAY + 120)
    await setFunding(exchange, { price: PRICE, rate: 0n })
    await replayAndCompare(exchange)
    expect((await trader.parameters()).takerFee).to.equal(300n)
    expect((await trader.parameters()).mode).to.equal(0n)
    await management.restrictMode(2)
    await pass(exchange, 10)
    await management.scheduleMode(3, await later(DAY + 60))
    await replayAndCompare(exchange)
    expect((await trader.parameters()).mode).to.equal(2n)
    await management.proposeOperator(alice)
    await trader.connect(alice).acceptOperator()
    await management.revokeOperator(exchange.operator)
    await replayAndCompare(exchange)
  })

  it('rebuilds owners’ calls: cancels, floors, nonces, adjustments, session keys, forwarded requests', async () => {
    const { trader, keys } = exchange
    await trade(exchange, alice, bob, { steps: 1_000, price: 500_000, leverage: 5 })
    await adjustMargin(exchange, { by: alice, amount: e18('100'), nonce: 3n, price: PRICE })
    await adjustLeverage(exchange, { by: bob, leverage: 10, nonce: 5n, price: PRICE })
    await trader.connect(alice).invalidateMarginNonces(4)
    await trader.connect(carol).cancelSalts([7, 14, 21])
    await trader.connect(carol).cancelSaltsBelow(50)
    await replayAndCompare(exchange)
    await pass(exchange, 20)
    await trader.connect(carol).cancelSaltsBelow(60)
    await trader.connect(carol).cancelSaltsBelow(70)
    await trader.connect(carol).invalidateMarginNonces(9)
    await keys.connect(alice).registerSessionKey(carol, 1)
    await keys.connect(bob).registerSessionKey(carol, 3)
    await keys.connect(bob).revokeSessionKey(carol)
    const call = {
      to: exchange.shared.accountManager,
      data: keys.interface.encodeFunctionData('registerSessionKey', [bob.address, 2]),
    }
    await forwarderOf(exchange).execute(await signForward(exchange, carol, call))
    await replayAndCompare(exchange)
  })

  it('rebuilds heartbeats, poked prices and a frozen market', async () => {
    const { trader } = exchange
    await trade(exchange, alice, bob, { steps: 1_000, price: 500_000, leverage: 5 })
    await trader.heartbeat()
    await pass(exchange, 60)
    const { report } = await actionOf(exchange, { price: e18('50100') })
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(await nextSecond(exchange))
    await trader.connect(alice).poke(report)
    await trader.connect(alice).requestFreeze()
    await replayAndCompare(exchange)
    await pass(exchange, DAY + 1)
    await trader.connect(bob).freeze()
    await replayAndCompare(exchange)
  })

  it('rebuilds a final price and its claims', async () => {
    const ending = await (await chain()).networkHelpers.loadFixture(futureExchange)
    const price = 1_000n * ending.spec.tick
    await trade(ending, alice, bob, { steps: 1_000, price: 1_000, leverage: 5 })
    await ending.trader.connect(ending.admin).extendExpiry(ending.spec.expiresAt + DAY * 1000)
    await ending.trader.connect(ending.admin).extendDisputeWindow(2 * DAY * 1000)
    await settleMode(ending)
    await reportFinal(ending, { price: 2n * price })
    await replayAndCompare(ending)
    await reportFinal(ending, { price })
    await passDisputeWindow(ending)
    await finalize(ending)
    await replayAndCompare(ending)
    await pass(ending, INSOLVENCY_WINDOW + 1)
    await ending.trader.claim(alice.address)
    await replayAndCompare(ending)
  })

  it('rebuilds the bank: announcements, listings, pauses, treasury', async () => {
    const { bank, keys, treasury, shared } = exchange
    await trade(exchange, alice, bob, { steps: 1_000, price: 500_000, leverage: 5 })
    await bank.announceMarket(keys)
    await bank.announceMarket(shared.oracle)
    await bank.withdrawAnnouncement(keys)
    await replayAndCompare(exchange)
    const listed = { ...exchange.spec, marketId: 77 as MarketId }
    const { admin, operator, oracleSigners } = exchange
    await deployMarket(admin, shared, listed, {
      operators: [operator],
      oracleSigners: oracleSigners.map(addressOf),
    })
    await bank.collectFees(exchange.spec.trader)
    await bank.setTreasury(carol)
    await bank.connect(alice).requestWithdrawal(e18('10'))
    await bank.pause()
    await replayAndCompare(exchange)
    await bank.unpause()
    await pass(exchange, 30)
    await bank.connect(alice).withdraw()
    await replayAndCompare(exchange)
    expect(await bank.treasury()).not.to.equal(treasury.address)
  })

  it('rebuilds roles, scheduled operations and price sources with a notice', async () => {
    const { access, admin, bank, shared, oracleSigners } = exchange
    const delayed = await new SignedPriceOracle__factory(admin).deploy(access, 600)
    await assignFunctions(access, 'SignedPriceOracle', delayed)
    const signers = oracleSigners.map(addressOf)
    await delayed.setFeed(feedIdOf(9), signers, 2)
    await pass(exchange, 700)
    await delayed.setFeed(feedIdOf(9), signers.slice(0, 2), 1)
    await access.grantRole(ROLES.listing, alice, 3600)
    await access.grantRole(ROLES.admin, bob, 0)
    await access.grantRole(ROLES.treasury, carol, 0)
    await replayAndCompare(exchange, [delayed])
    await delayed.cancelFeed(feedIdOf(9))
    const asAlice = ExchangeAccess__factory.connect(shared.access, alice)
    await asAlice.acceptRole(ROLES.listing)
    await access.connect(bob).acceptRole(ROLES.admin)
    await access.revokeRole(ROLES.treasury, carol)
    const [one, two] = [shared.oracle, shared.accountManager].map((market) =>
      bank.interface.encodeFunctionData('announceMarket', [market]),
    ) as [string, string]
    for (const data of [one, two]) await asAlice.schedule(bank, data, 0)
    await replayAndCompare(exchange, [delayed])
    await access.cancel(alice, bank, two)
    await pass(exchange, 3601)
    await asAlice.execute(bank, one)
    await access.renounceRole(ROLES.admin, admin)
    await replayAndCompare(exchange, [delayed])
  })
})
