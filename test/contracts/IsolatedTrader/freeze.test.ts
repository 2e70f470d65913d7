import { expect } from 'chai'
import { ZeroAddress } from 'ethers'
import { fieldsOf, nextSecond, pair, perpetualExchange, settle, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustLeverage, adjustMargin, setFunding } from '../support/adjust.ts'
import { audit } from '../support/audit.ts'
import { DAY, deleverage, finalize, inherit, pass, SILENCE, tick, trade } from '../support/risk.ts'
import { asAnyAccount, type CurrentExchange, freeze, fresh, poke } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')

describe('requestFreeze of a market in which no batch has settled', () => {
  const current = {} as CurrentExchange
  beforeEach(async () => {
    current.exchange = await fresh(perpetualExchange)
  })
  const refused = async () => {
    const trader = await asAnyAccount(current)
    await expect(trader.requestFreeze()).to.be.revertedWithCustomError(trader, 'MarketNeverTraded')
  }

  it('when nothing has happened since the deployment, it reverts with MarketNeverTraded', () => refused())

  it('when the operator has only sent heartbeats, it reverts with MarketNeverTraded', async () => {
    await current.exchange.trader.heartbeat()
    await pass(current.exchange, 2 * SILENCE)
    await refused()
  })

  it('when the only action is a funding update, which needs no listed market, it reverts with MarketNeverTraded', async () => {
    await setFunding(current.exchange, { price: e18('100'), rate: 0n })
    expect((await current.exchange.trader.clock()).actionId).to.equal(1n)
    await refused()
  })

  it('when the first batch has settled, it emits FreezeRequested', async () => {
    await trade(current.exchange, alice, bob, { steps: 1, price: 1000 })
    const trader = await asAnyAccount(current)
    await expect(trader.requestFreeze()).to.emit(trader, 'FreezeRequested')
  })
})

describe('freeze', () => {
  const current = {} as CurrentExchange
  beforeEach(async () => {
    current.exchange = await fresh(perpetualExchange)
    await trade(current.exchange, alice, bob, { steps: 1000, price: 1000, leverage: 5 })
  })
  afterEach(() => audit(current.exchange))

  it('when a day has passed without an action, any account can freeze; a second earlier it reverts with FreezeEarly', async () => {
    const { exchange } = current
    const trader = await asAnyAccount(current)
    await trader.requestFreeze()
    const { requestedAt } = await trader.windDown()
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(Number(requestedAt) / 1000 + DAY)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeEarly')
    await time.setNextBlockTimestamp(Number(requestedAt) / 1000 + DAY + 1)
    const { actionId } = await trader.clock()
    await expect(trader.freeze()).to.emit(trader, 'MarketFrozen')
    expect((await trader.clock()).actionId).to.equal(actionId + 1n)
    expect((await trader.parameters()).mode).to.equal(4n)
    expect((await trader.windDown()).price).to.equal(e18('100'))
  })

  it('when no freeze was requested, it reverts with FreezeNotRequested', async () => {
    const trader = await asAnyAccount(current)
    await pass(current.exchange, 2 * SILENCE)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeNotRequested')
  })

  it('when the operator sends a heartbeat after the request, it reverts with FreezeRequestVoid and a new request works', async () => {
    const { exchange } = current
    const trader = await asAnyAccount(current)
    await trader.requestFreeze()
    await pass(exchange, SILENCE - 10)
    const at = await nextSecond(exchange)
    await tick(exchange)
    await expect(exchange.trader.heartbeat())
      .to.emit(trader, 'Heartbeat')
      .withArgs(at * 1000)
    await pass(exchange, 100)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeRequestVoid')
    await freeze(current)
    expect((await trader.windDown()).endedAt).to.not.equal(0n)
  })

  it('when the operator settles a batch after the request, it reverts with FreezeRequestVoid', async () => {
    const trader = await asAnyAccount(current)
    await trader.requestFreeze()
    await pass(current.exchange, 100)
    await trade(current.exchange, alice, bob, { steps: 1000, price: 1000, leverage: 5 })
    await pass(current.exchange, SILENCE)
    await expect(trader.freeze()).to.be.revertedWithCustomError(trader, 'FreezeRequestVoid')
  })

  it('when a request is pending, another reverts with FreezeAlreadyRequested', async () => {
    const trader = await asAnyAccount(current)
    await trader.requestFreeze()
    await pass(current.exchange, 100)
    await expect(trader.requestFreeze()).to.be.revertedWithCustomError(trader, 'FreezeAlreadyRequested')
  })

  it('when the last action’s asOf is ahead of block time, a request made after it stays valid', async () => {
    const { exchange } = current
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
    const trader = await asAnyAccount(current)
    await trader.requestFreeze()
    expect((await trader.windDown()).requestedAt).to.equal(BigInt(asOf))
    await expect(trader.requestFreeze()).to.be.revertedWithCustomError(trader, 'FreezeAlreadyRequested')
    await pass(exchange, SILENCE + 3)
    await trader.freeze()
    expect(spec.kind).to.equal('perpetual')
  })

  it('when frozen, every other state change reverts with MarketEnded, MarketNotOpen or a mode error', async () => {
    await freeze(current)
    const { exchange } = current
    const { trader, admin } = exchange
    const ended = (call: Promise<unknown>) =>
      expect(call).to.be.revertedWithCustomError(trader, 'MarketEnded')
    await ended(trader.heartbeat())
    await ended(trader.requestFreeze())
    await ended(trader.freeze())
    await ended(poke(current, e18('100')))
    const notOpen = (call: Promise<unknown>) =>
      expect(call).to.be.revertedWithCustomError(trader, 'MarketNotOpen')
    await notOpen(trade(exchange, alice, bob, { steps: 1, price: 1000 }))
    await notOpen(inherit(exchange, alice, { price: e18('100') }))
    await notOpen(deleverage(exchange, alice, [{ of: bob, steps: 1 }], { price: e18('100') }))
    await notOpen(setFunding(exchange, { price: e18('100'), rate: 0n }))
    await notOpen(finalize(exchange))
    for (const amount of [1n, -1n])
      await notOpen(adjustMargin(exchange, { by: alice, amount, price: e18('105') }))
    await notOpen(adjustLeverage(exchange, { by: alice, leverage: 5, price: e18('100') }))
    await ended(trader.connect(admin).setBackstop(ZeroAddress, 0))
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

  it('when a change of parameters was scheduled, freezing drops it', async () => {
    const { exchange } = current
    const { trader, admin } = exchange
    const fields = fieldsOf(await trader.parameters())
    const later = BigInt(await nextSecond(exchange)) * 1000n + 5n * 86_400_000n
    await trader.connect(admin).scheduleParameters({ ...fields, takerFee: fields.takerFee + 1n }, later)
    await freeze(current)
    expect((await trader.pendingChange()).parametersFrom).to.equal(0n)
    expect((await trader.lastReference()).changePending).to.equal(false)
    expect((await trader.parameters()).takerFee).to.equal(fields.takerFee)
  })

  it('when a funding rate was running, a freeze accrues it up to its end', async () => {
    const { trader } = current.exchange
    // 1,000 wei per step and millisecond.
    await setFunding(current.exchange, { price: e18('100'), rate: 3_600_000_000n })
    const { validFrom, validUntil } = await trader.fundingRate()
    await freeze(current)
    expect((await trader.lastReference()).fundingIndex).to.equal((validUntil - validFrom) * 1000n)
  })

  describe('price of a frozen market', () => {
    it('when a newer report was poked, it is the poked price', async () => {
      await pass(current.exchange, 60)
      await expect(poke(current, e18('103'))).to.emit(current.exchange.trader, 'PricePoked')
      expect((await current.exchange.trader.poked()).price).to.equal(e18('103'))
      await freeze(current)
      expect((await current.exchange.trader.windDown()).price).to.equal(e18('103'))
    })

    it('when the operator used a newer report after the poke, it is that price', async () => {
      await pass(current.exchange, 60)
      await poke(current, e18('103'))
      await trade(current.exchange, alice, bob, { steps: 1000, price: 1020, leverage: 5 })
      await freeze(current)
      expect((await current.exchange.trader.windDown()).price).to.equal(e18('102'))
    })

    it('when the operator used another report of the poked time, it is that price', async () => {
      await pass(current.exchange, 60)
      const observedAt = (await nextSecond(current.exchange)) * 1000
      await poke(current, e18('103'), { observedAt })
      await settle(current.exchange, { price: 1020, observedAt, fills: pair(alice, bob, 1) })
      await freeze(current)
      expect((await current.exchange.trader.windDown()).price).to.equal(e18('102'))
    })

    it('when a poked report is older, conflicting, too far off, stale, ahead or unsigned, poke reverts with the error for that case', async () => {
      const { exchange } = current
      const { trader, oracle } = exchange
      const { observedAt } = await trader.lastReference()
      const refused = (call: Promise<unknown>, error: string) =>
        expect(call).to.be.revertedWithCustomError(trader, error)
      await refused(poke(current, e18('100'), { observedAt: Number(observedAt) - 1 }), 'ReportOlder')
      await refused(poke(current, e18('101'), { observedAt: Number(observedAt) }), 'ReportConflict')
      await refused(poke(current, e18('150')), 'ReportMoveTooLarge')
      await poke(current, e18('110'))
      // The allowed move is also measured from the poked price.
      await refused(poke(current, e18('95')), 'ReportMoveTooLarge')
      await refused(
        poke(current, e18('110'), { observedAt: (await nextSecond(exchange)) * 1000 + 2001 }),
        'ReportAhead',
      )
      const old = (await nextSecond(exchange)) * 1000
      await pass(exchange, 20)
      await refused(poke(current, e18('110'), { observedAt: old }), 'ReportStale')
      const signers = [wallet('mallory'), wallet('mallet')].sort((a, b) =>
        a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1,
      )
      await expect(poke(current, e18('110'), { signers })).to.be.revertedWithCustomError(
        oracle,
        'SignerUnknown',
      )
    })

    it('when a price is poked, the reference price of actions stays unchanged', async () => {
      await pass(current.exchange, 60)
      await poke(current, e18('103'))
      expect((await current.exchange.trader.lastReference()).oraclePrice).to.equal(e18('100'))
    })
  })
})
