/** Scheduled parameters and modes: notice periods, activation, and how restrictions and schedules combine. */
import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import type { Millis } from '../../../domain/units.ts'
import { parametersOf } from '../../../stack/deploy.ts'
import {
  buildPart,
  chain,
  type Exchange,
  pair,
  perpetualExchange,
  send,
  settle,
} from '../../support/exchange.ts'
import { harness } from '../../support/parity.ts'
import { expectRejected } from '../../support/refusals.ts'

const DAY = 86_400_000
const CANCEL_GRACE = 5_000
const [OPEN, CANCEL_ONLY, HALTED, SETTLING, SETTLED] = [0, 1, 2, 3, 4]

describe('scheduled parameters and modes', () => {
  let exchange: Exchange
  let trader: Exchange['trader']
  const latest = async () => (await exchange.connection.networkHelpers.time.latest()) * 1000
  const wait = (ms: number) => exchange.connection.networkHelpers.time.increase(ms / 1000)
  const next = (change: object = {}) => ({ ...parametersOf(exchange.spec), ...change })
  const refused = (sent: Promise<unknown>, error: string, ...args: unknown[]) => {
    const assertion = expect(sent).to.be.revertedWithCustomError(exchange.trader, error)
    return args.length === 0 ? assertion : assertion.withArgs(...args)
  }

  /** A batch with the given `asOf`, mined within its lifetime. */
  async function tradeAsOf(asOf: number) {
    const [alice, bob] = exchange.users
    const time = { asOf: asOf as Millis, observedAt: asOf }
    const part = await buildPart(exchange, { price: 500_000, fills: pair(alice!, bob!, 10), ...time })
    return send(exchange, encodeSettleBatch(part, exchange.spec))
  }

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    trader = exchange.trader.connect(exchange.admin)
  })

  describe('parameters', () => {
    /** Schedules a change (by default a lower taker rate) for one day and one minute from now. */
    async function schedule(change: object = { takerFee: 400 }): Promise<number> {
      const activeFrom = (await latest()) + DAY + 60_000
      await trader.scheduleParameters(next(change), activeFrom)
      return activeFrom
    }

    it('when scheduled, parameters are pending and the current ones stay in force', async () => {
      const activeFrom = await schedule()
      expect((await trader.parameters()).takerFee).to.equal(500n)
      const { parameters, parametersFrom } = await trader.pendingChange()
      expect([parameters.takerFee, parametersFrom]).to.deep.equal([400n, BigInt(activeFrom)])
      expect((await trader.lastReference()).changePending).to.equal(true)
    })

    it('when an action’s asOf reaches their time, they are activated and ParametersChanged is emitted; 1 ms before, not', async () => {
      const activeFrom = await schedule({ maxLeverage: 4 })
      await exchange.connection.networkHelpers.time.increaseTo(activeFrom / 1000 - 1)
      await tradeAsOf(activeFrom - 1)
      await refused(tradeAsOf(activeFrom), 'LeverageOutOfRange')
      expect((await trader.parameters()).maxLeverage).to.equal(20n)

      const [alice, bob] = exchange.users
      const fills = pair(alice!, bob!, 10, { leverage: 4 })
      const time = { asOf: activeFrom as Millis, observedAt: activeFrom }
      await expect(settle(exchange, { price: 500_000, fills, ...time }))
        .to.emit(trader, 'ParametersChanged')
        .withArgs(2, [
          22500 * 2,
          22500,
          50_000,
          50_000,
          100,
          500,
          10_000,
          100_000,
          20_000,
          1_000,
          10_000,
          4,
          OPEN,
        ])
      expect((await trader.parameters()).maxLeverage).to.equal(4n)
      expect((await trader.lastReference()).changePending).to.equal(false)
      expect((await trader.pendingChange()).parametersFrom).to.equal(0n)
    })

    it('when scheduled less than a day ahead, it reverts with ChangeTooEarly', async () => {
      const block = (await latest()) + 1_000
      await exchange.connection.networkHelpers.time.setNextBlockTimestamp(block / 1000)
      await refused(
        trader.scheduleParameters(next(), block + DAY - 1),
        'ChangeTooEarly',
        block + DAY,
        block + DAY - 1,
      )
      await exchange.connection.networkHelpers.time.setNextBlockTimestamp(block / 1000 + 1)
      await trader.scheduleParameters(next(), block + 1_000 + DAY)
    })

    it('when parameters are out of bounds, it reverts with ParametersInvalid', async () => {
      const later = (await latest()) + 2 * DAY
      for (const change of [
        { makerFee: 501 },
        { takerFee: 50_001 },
        { imr: 29_999 },
        { fundingCap: 40_001 },
        { maxLeverage: 23 },
      ])
        await refused(trader.scheduleParameters(next(change), later), 'ParametersInvalid')
    })

    it('when they contain another mode, it reverts with ModeChangesApart', async () => {
      const later = (await latest()) + 2 * DAY
      await refused(
        trader.scheduleParameters(next({ mode: HALTED }), later),
        'ModeChangesApart',
        OPEN,
        HALTED,
      )
    })

    it('when a change is already scheduled, it reverts with ParametersAlreadyScheduled until that one is cancelled', async () => {
      const activeFrom = await schedule()
      const later = activeFrom + DAY
      await refused(trader.scheduleParameters(next(), later), 'ParametersAlreadyScheduled', activeFrom)
      await expect(trader.cancelScheduledParameters()).to.emit(trader, 'ScheduledParametersCancelled')
      await refused(trader.cancelScheduledParameters(), 'NoParametersScheduled')
      await trader.scheduleParameters(next(), later)
    })

    it('when parameters are in force that no action has stored, the guardian cannot cancel them', async () => {
      const activeFrom = await schedule({ maxLeverage: 4 })
      const { time } = exchange.connection.networkHelpers
      await time.increaseTo(activeFrom / 1000 - 2)
      await trader.cancelScheduledParameters()
      const again = await schedule({ maxLeverage: 4 })
      await time.increaseTo(again / 1000)
      await refused(trader.cancelScheduledParameters(), 'NoParametersScheduled')
      await refused(tradeAsOf((await latest()) + 1_000), 'LeverageOutOfRange')
    })

    it('when a halted market has parameters in force that no action has stored, others can be scheduled and cancelled', async () => {
      const activeFrom = await schedule({ maxLeverage: 4 })
      await trader.restrictMode(HALTED)
      await exchange.connection.networkHelpers.time.increaseTo(activeFrom / 1000)
      const later = (await latest()) + 2 * DAY
      const sent = trader.scheduleParameters(next({ maxLeverage: 5, mode: HALTED }), later)
      await expect(sent).to.emit(trader, 'ParametersChanged')
      expect((await trader.parameters()).maxLeverage).to.equal(4n)
      expect((await trader.pendingChange()).parametersFrom).to.equal(BigInt(later))
      await trader.cancelScheduledParameters()
      expect((await trader.parameters()).maxLeverage).to.equal(4n)
      expect((await trader.pendingChange()).parametersFrom).to.equal(0n)
    })

    it('when a change of the mode is due and parameters are not, cancelling them keeps the mode', async () => {
      const activeFrom = await schedule({ maxLeverage: 4 })
      await trader.restrictMode(HALTED)
      await wait(10_000)
      await expect(trader.cancelScheduledParameters()).to.emit(trader, 'ParametersChanged')
      expect((await trader.parameters()).mode).to.equal(BigInt(HALTED))
      await exchange.connection.networkHelpers.time.increaseTo(activeFrom / 1000)
      expect((await trader.readiness()).mode).to.equal(BigInt(HALTED))
    })

    it('when the market was restricted in the meantime, activation leaves it restricted', async () => {
      const activeFrom = await schedule()
      await trader.restrictMode(HALTED)
      await exchange.connection.networkHelpers.time.increaseTo(activeFrom / 1000)
      await refused(tradeAsOf(activeFrom), 'MarketNotOpen', HALTED)
    })

    it('when an unauthorized caller schedules, cancels or restricts, it reverts with AccessManagedUnauthorized', async () => {
      const unauthorized = exchange.trader.connect(exchange.operator)
      const later = (await latest()) + 2 * DAY
      for (const call of [
        () => unauthorized.scheduleParameters(next(), later),
        () => unauthorized.cancelScheduledParameters(),
        () => unauthorized.scheduleMode(HALTED, later),
        () => unauthorized.restrictMode(HALTED),
      ])
        await expectRejected(call(), /AccessManagedUnauthorized/)
    })
  })

  describe('modes', () => {
    it('when restricted, batches with asOf up to CANCEL_GRACE later settle and later ones revert with MarketNotOpen', async () => {
      await trader.restrictMode(HALTED)
      const at = await latest()
      await wait(4_000)
      await tradeAsOf(at + CANCEL_GRACE)
      await refused(tradeAsOf(at + CANCEL_GRACE + 1), 'MarketNotOpen', HALTED)
    })

    it('when the guardian sets a mode that is not stricter, it reverts with ModeNotStricter', async () => {
      for (const mode of [OPEN, SETTLING, SETTLED]) {
        await refused(trader.restrictMode(mode), 'ModeNotStricter', OPEN, mode)
      }
      await trader.restrictMode(HALTED)
      await refused(trader.restrictMode(CANCEL_ONLY), 'ModeNotStricter', HALTED, CANCEL_ONLY)
      await refused(trader.restrictMode(HALTED), 'ModeNotStricter', HALTED, HALTED)
      await wait(6_000)
      await refused(trader.restrictMode(HALTED), 'ModeNotStricter', HALTED, HALTED)
    })

    it('when reopening is scheduled, batches settle again from that time', async () => {
      await trader.restrictMode(HALTED)
      const reopens = (await latest()) + 60_000
      await trader.scheduleMode(OPEN, reopens)
      await wait(50_000)
      await refused(tradeAsOf(await latest()), 'MarketNotOpen', HALTED)
      await wait(10_000)
      await tradeAsOf(reopens)
      expect((await trader.parameters()).mode).to.equal(BigInt(OPEN))
    })

    it('when a restriction follows a scheduled reopening, it stays in force', async () => {
      await trader.restrictMode(HALTED)
      const reopens = (await latest()) + 60_000
      await trader.scheduleMode(OPEN, reopens)
      await trader.restrictMode(HALTED)
      await wait(70_000)
      await refused(tradeAsOf(await latest()), 'MarketNotOpen', HALTED)
    })

    it('when a restriction precedes a scheduled settling, both take effect at their times', async () => {
      const ends = (await latest()) + DAY + 60_000
      await trader.scheduleMode(SETTLING, ends)
      await trader.restrictMode(HALTED)
      await wait(6_000)
      await refused(tradeAsOf(await latest()), 'MarketNotOpen', HALTED)
      await exchange.connection.networkHelpers.time.increaseTo(ends / 1000)
      await refused(tradeAsOf(ends), 'MarketNotOpen', SETTLING)
      await refused(trader.restrictMode(HALTED), 'ModeNotStricter', SETTLING, HALTED)
    })

    it('when settling is scheduled for a halted market, the market stays halted until then', async () => {
      await trader.scheduleMode(HALTED, (await latest()) + 7_000)
      await wait(20_000)
      await trader.scheduleMode(SETTLING, (await latest()) + DAY + 60_000)
      await refused(tradeAsOf((await latest()) + 1_000), 'MarketNotOpen', HALTED)
    })

    it('when settling is scheduled for a market that was reopened, the market stays open until then', async () => {
      await trader.restrictMode(HALTED)
      await wait(6_000)
      await trader.scheduleMode(OPEN, (await latest()) + 7_000)
      await wait(20_000)
      await trader.scheduleMode(SETTLING, (await latest()) + DAY + 60_000)
      await tradeAsOf((await latest()) + 1_000)
    })

    it('when a market that no action has used since it became cancel-only is halted, it stays cancel-only until then', async () => {
      for (const makeCancelOnly of [
        async () => trader.scheduleMode(CANCEL_ONLY, (await latest()) + 7_000),
        () => trader.restrictMode(CANCEL_ONLY),
      ]) {
        await makeCancelOnly()
        await wait(20_000)
        await trader.restrictMode(HALTED)
        await refused(tradeAsOf((await latest()) + 1_000), 'MarketNotOpen', CANCEL_ONLY)
        await trader.scheduleMode(OPEN, (await latest()) + 7_000)
        await wait(20_000)
      }
    })

    it('when a mode is scheduled with too little notice, it reverts with ChangeTooEarly; settling needs a day', async () => {
      const block = (await latest()) + 1_000
      const { setNextBlockTimestamp } = exchange.connection.networkHelpers.time
      await setNextBlockTimestamp(block / 1000)
      await refused(
        trader.scheduleMode(HALTED, block + CANCEL_GRACE),
        'ChangeTooEarly',
        block + CANCEL_GRACE + 1,
        block + CANCEL_GRACE,
      )
      const end = block + 1_000 + DAY
      await setNextBlockTimestamp(block / 1000 + 1)
      await refused(trader.scheduleMode(SETTLING, end - 1), 'ChangeTooEarly', end, end - 1)
    })

    it('when a market is settling, reopening reverts with ModeFinal; SETTLED cannot be scheduled', async () => {
      const later = (await latest()) + DAY + 60_000
      await refused(trader.scheduleMode(SETTLED, later), 'ModeFinal', OPEN, SETTLED)
      await trader.scheduleMode(SETTLING, later)
      await exchange.connection.networkHelpers.time.increaseTo(later / 1000)
      await refused(trader.scheduleMode(OPEN, later + 2 * DAY), 'ModeFinal', SETTLING, OPEN)
    })
  })

  // Columns: batch, funding, inherit, deleverage, finalize, freeze, add margin, remove margin, change leverage.
  const ALLOWED: readonly [string, number, string][] = [
    ['open', OPEN as number, 'yyyynyyyy'],
    ['cancel-only', CANCEL_ONLY as number, 'yyyynyyyy'],
    ['halted', HALTED as number, 'nnnnnyynn'],
    ['settling', SETTLING as number, 'nnnnyyynn'],
    ['settled', SETTLED as number, 'nnnnnnnnn'],
  ]
  for (const [name, mode, cells] of ALLOWED) {
    it(`when a market is ${name}, it allows exactly the actions of the table`, async () => {
      const rules = await harness()
      const allowed = await Promise.all(
        [...cells].map((_, kind) =>
          rules.requireMode(mode, kind).then(
            () => 'y',
            () => 'n',
          ),
        ),
      )
      expect(allowed.join('')).to.equal(cells)
    })
  }
})
