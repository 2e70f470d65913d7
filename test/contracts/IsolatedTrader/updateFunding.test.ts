import { expect } from 'chai'
import type { ContractTransactionResponse } from 'ethers'
import {
  accrue,
  FULL_SWING,
  type FundingRate,
  fundingBounds,
  fundingCapAt,
} from '../../../domain/prices/funding.ts'
import type { FundingIndex, HourlyFunding, Millis, Price } from '../../../domain/units.ts'
import {
  chain,
  coarseExchange,
  type Exchange,
  futureExchange,
  nextSecond,
  perpetualExchange,
  sessionExchange,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustMargin, type FundingInput, HOUR, setFunding } from '../support/adjust.ts'
import { audit } from '../support/audit.ts'
import { actionOf, pass, tick, trade } from '../support/risk.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const DEAL = { steps: 1000, price: 1000, leverage: 5 }
const PRICE = e18('100')
/** 1 % per hour of 0.1, the price of a step. */
const CAP = e18('0.001')
const THIRD = CAP / 3n

describe('updateFunding', () => {
  let exchange: Exchange
  const update = (input: Partial<FundingInput> & { rate: bigint }): Promise<ContractTransactionResponse> =>
    setFunding(exchange, { price: PRICE, ...input })
  const refused = async (
    input: Partial<FundingInput> & { rate: bigint },
    error: string,
    args?: readonly unknown[],
  ): Promise<void> => {
    const assertion = expect(update(input)).to.be.revertedWithCustomError(exchange.trader, error)
    await (args ? assertion.withArgs(...args) : assertion)
  }
  const indexOf = async (): Promise<bigint> => (await exchange.trader.lastReference()).fundingIndex
  const marginOf = async (address: string): Promise<bigint> =>
    (await exchange.trader.position(address)).margin
  const asOfNext = async (): Promise<number> => (await nextSecond(exchange)) * 1000

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    await trade(exchange, alice, bob, DEAL)
  })
  afterEach(() => audit(exchange))

  it('when the bank is paused, any update reverts with BankPaused, and the running rate accrues until it ends', async () => {
    await update({ rate: THIRD })
    const before = await indexOf()
    const { validFrom, validUntil } = await exchange.trader.fundingRate()
    await exchange.bank.pause()
    const { endsAt } = await exchange.bank.lastPause()
    for (const rate of [THIRD, 0n, THIRD + 1n]) {
      await expect(update({ rate }))
        .to.be.revertedWithCustomError(exchange.bank, 'BankPaused')
        .withArgs(endsAt)
    }
    await exchange.connection.networkHelpers.time.increaseTo(endsAt)
    await update({ rate: 0n })
    // An hour at most, although the pause lasted three days.
    expect((await indexOf()) - before).to.equal((THIRD * (validUntil - validFrom)) / BigInt(HOUR))
    expect(validUntil - validFrom <= BigInt(HOUR)).to.equal(true)
  })

  // ---------------------------------------------------------------------- accrual

  it('when a rate is active, longs pay exactly what shorts receive, at each action', async () => {
    const [long, short] = [await marginOf(alice.address), await marginOf(bob.address)]
    const sent = await update({ rate: THIRD })
    const { timestamp } = (await sent.getBlock())!
    await expect(sent)
      .to.emit(exchange.trader, 'FundingUpdated')
      .withArgs(2, timestamp * 1000, THIRD, timestamp * 1000 + HOUR, 0, PRICE, timestamp * 1000)
    expect(await marginOf(alice.address)).to.equal(long)
    await pass(exchange, 1799)
    await trade(exchange, alice, bob, { ...DEAL, steps: 10 })
    const grown = (THIRD * 1800n) / 3600n
    expect(await indexOf()).to.equal(grown)
    const posted = e18('0.2')
    expect(await marginOf(alice.address)).to.equal(long - 1000n * grown + posted)
    expect(await marginOf(bob.address)).to.equal(short + 1000n * grown + posted)
  })

  it('when the rate is negative, the index decreases', async () => {
    await update({ rate: -THIRD })
    await pass(exchange, 1799)
    await update({ rate: -THIRD })
    expect(await indexOf()).to.equal(-(THIRD * 1800n) / 3600n)
  })

  it('when no action follows, accrual ends with the rate’s validity', async () => {
    await update({ rate: THIRD, validUntil: (await asOfNext()) + 90_000 })
    expect((await exchange.trader.lastReference()).funded).to.equal(true)
    await pass(exchange, 10_000)
    await trade(exchange, alice, bob, { ...DEAL, steps: 10 })
    expect(await indexOf()).to.equal((THIRD * 90n) / 3600n)
    const { funded } = await exchange.trader.lastReference()
    expect(funded, 'later actions do not read the rate').to.equal(false)
    await pass(exchange, 10_000)
    await update({ rate: THIRD })
    expect(await indexOf()).to.equal((THIRD * 90n) / 3600n)
  })

  it('when two actions have the same asOf, nothing accrues between them', async () => {
    await update({ rate: THIRD })
    const asOf = await asOfNext()
    await update({ rate: THIRD, asOf })
    const index = await indexOf()
    await update({ rate: THIRD, asOf })
    expect(await indexOf()).to.equal(index)
  })

  it('when an adjustment’s asOf is before the last action, accrued funding is not reversed', async () => {
    await update({ rate: THIRD })
    await pass(exchange, 8)
    await trade(exchange, alice, bob, { ...DEAL, steps: 10 })
    const index = await indexOf()
    expect(index).to.equal((THIRD * 9n) / 3600n)
    const [margin, asOf] = [await marginOf(alice.address), (await asOfNext()) - 5000]
    await adjustMargin(exchange, { by: alice, amount: 1n, asOf })
    expect([await indexOf(), await marginOf(alice.address)]).to.deep.equal([index, margin + 1n])
  })

  it('when the rate is 0, nothing accrues and the reference is marked as not funded', async () => {
    await update({ rate: 0n })
    expect((await exchange.trader.lastReference()).funded).to.equal(false)
    await pass(exchange, 100)
    await update({ rate: 0n })
    expect(await indexOf()).to.equal(0n)
  })

  // ---------------------------------------------------------------------- bounds

  it('when the first rate exceeds a third of the cap by 1 wei, it reverts with FundingRateOutOfRange', async () => {
    for (const rate of [THIRD + 1n, -THIRD - 1n]) {
      await refused({ rate }, 'FundingRateOutOfRange', [-THIRD, THIRD, rate])
    }
    await update({ rate: -THIRD })
  })

  it('when the rate changes faster than from end to end in 45 minutes, it reverts with FundingRateOutOfRange', async () => {
    await update({ rate: THIRD })
    await pass(exchange, 59)
    const swing = (2n * CAP * 60_000n) / BigInt(FULL_SWING)
    await refused({ rate: THIRD + swing + 1n }, 'FundingRateOutOfRange')
    const { validFrom } = await exchange.trader.fundingRate()
    const asOf = Number(validFrom) + 60_000
    await refused({ rate: THIRD - swing - 1n, asOf }, 'FundingRateOutOfRange', [
      THIRD - swing,
      THIRD + swing,
      THIRD - swing - 1n,
    ])
    await update({ rate: THIRD - swing, asOf })
  })

  it('when the rate exceeds the cap, it reverts with FundingRateOutOfRange', async () => {
    await update({ rate: THIRD })
    await pass(exchange, 3000)
    await refused({ rate: CAP + 1n }, 'FundingRateOutOfRange', [-CAP, CAP, CAP + 1n])
    await update({ rate: CAP })
  })

  it('when updated twice at one asOf, only the same rate is accepted', async () => {
    const asOf = await asOfNext()
    await update({ rate: THIRD, asOf })
    await refused({ rate: THIRD - 1n, asOf }, 'FundingRateOutOfRange', [THIRD, THIRD, THIRD - 1n])
    await update({ rate: THIRD, asOf, validUntil: asOf + 1 })
  })

  it('when the last rate has expired, the allowed swing is measured from it and finally from zero', async () => {
    await update({ rate: THIRD })
    await pass(exchange, 1200)
    await update({ rate: CAP, validUntil: (await asOfNext()) + 1 })
    const running = await exchange.trader.fundingRate()
    const held: FundingRate = {
      rate: running.rate as HourlyFunding,
      validFrom: Number(running.validFrom) as Millis,
      validUntil: Number(running.validUntil) as Millis,
    }
    for (const wait of [60, 2000]) {
      await pass(exchange, wait)
      const asOf = await asOfNext()
      const { lowest, highest } = fundingBounds(exchange.spec, held, PRICE as Price, asOf as Millis)
      expect(fundingCapAt(exchange.spec, PRICE as Price)).to.equal(CAP)
      await refused({ rate: highest + 1n, asOf }, 'FundingRateOutOfRange', [lowest, highest, highest + 1n])
      await refused({ rate: lowest - 1n, asOf: await asOfNext() }, 'FundingRateOutOfRange')
    }
  })

  it('when the validity is empty, in the past or over an hour, it reverts with FundingValidityInvalid', async () => {
    for (const [ahead, isFine] of [
      [0, false],
      [-1, false],
      [HOUR + 1, false],
      [HOUR, true],
      [1, true],
    ] as const) {
      const asOf = await asOfNext()
      const input = { rate: 0n, asOf, validUntil: asOf + ahead }
      if (isFine) await update(input)
      else await refused(input, 'FundingValidityInvalid', [asOf, asOf + HOUR, asOf + ahead])
    }
  })

  it('when the index could exceed its field, it reverts with FundingIndexOutOfRange', async () => {
    const coarse = await (await chain()).networkHelpers.loadFixture(coarseExchange)
    const price = e18('100000000')
    const largest = 2n ** 95n - 1n
    const { asOf } = await actionOf(coarse, { price })
    await expect(setFunding(coarse, { price, rate: largest, asOf, validUntil: asOf + HOUR }))
      .to.emit(coarse.trader, 'FundingUpdated')
      .withArgs(1, asOf, largest, asOf + HOUR, 0, price, asOf)
    await pass(coarse, 3_700)
    await expect(setFunding(coarse, { price, rate: largest })).to.be.revertedWithCustomError(
      coarse.trader,
      'FundingIndexOutOfRange',
    )
  })

  it('when the market is not a perpetual, it reverts with NotPerpetual', async () => {
    const future = await (await chain()).networkHelpers.loadFixture(futureExchange)
    await expect(setFunding(future, { price: PRICE, rate: 0n })).to.be.revertedWithCustomError(
      future.trader,
      'NotPerpetual',
    )
  })

  // ---------------------------------------------------------------------- sequence and report

  it('consumes the next actionId once and stores the report', async () => {
    await update({ rate: 0n, price: e18('101') })
    expect((await exchange.trader.lastReference()).oraclePrice).to.equal(e18('101'))
    await refused({ rate: 0n, actionId: 2 }, 'ActionOutOfOrder', [3, 2])
    await refused({ rate: 0n, actionId: 4 }, 'ActionOutOfOrder', [3, 4])
    const { asOf } = await exchange.trader.clock()
    await refused({ rate: 0n, asOf: Number(asOf) - 1 }, 'AsOfDecreased')
    await refused({ rate: 0n, asOf: (await asOfNext()) + 2001 }, 'AsOfAhead')
    await pass(exchange, 20)
    await refused({ rate: 0n, asOf: (await asOfNext()) - 10_001 }, 'AsOfStale')
    await update({ rate: 0n, asOf: (await asOfNext()) - 10_000 })
  })

  it('when it reverts, clock and index stay unchanged', async () => {
    await update({ rate: THIRD })
    const [before, index] = [await exchange.trader.clock(), await indexOf()]
    await pass(exchange, 100)
    await refused({ rate: CAP + 1n }, 'FundingRateOutOfRange')
    expect(await exchange.trader.clock()).to.deep.equal(before)
    expect(await indexOf()).to.equal(index)
  })

  it('when the report is stale, too far off, older or of another feed, it reverts with the error for that case', async () => {
    const asOf = await asOfNext()
    await refused({ rate: 0n, asOf, observedAt: asOf - 1001 }, 'ReportOlder')
    await refused({ rate: 0n, price: e18('130') }, 'ReportMoveTooLarge')
    await pass(exchange, 30)
    const late = await asOfNext()
    await refused({ rate: 0n, asOf: late, observedAt: late - 10_001 }, 'ReportStale')
    const { actionId, report } = await actionOf(exchange, { price: PRICE, feedId: `0x${'22'.repeat(32)}` })
    await tick(exchange)
    await expect(
      exchange.trader.updateFunding(actionId, late, 0, late + 1000, { ...report, observedAt: late }, report),
    ).to.be.revertedWithCustomError(exchange.oracle, 'SignerUnknown')
  })

  it('when the report is the last used one, it needs no proof', async () => {
    const { trader } = exchange
    const { oraclePrice: price, observedAt } = await trader.lastReference()
    const { actionId } = await trader.clock()
    const asOf = await asOfNext()
    const known = { price, observedAt, proof: '0x' }
    await tick(exchange)
    await trader.updateFunding(actionId + 1n, asOf, 0, asOf + 1000, known, known)
    const another = { ...known, observedAt: observedAt + 1n }
    await expect(
      trader.updateFunding(actionId + 2n, asOf, 0, asOf + 1000, another, known),
    ).to.be.revertedWithCustomError(exchange.oracle, 'ProofLengthWrong')
  })

  it('when the sender is not an operator, it reverts with NotOperator', async () => {
    const { actionId, asOf, report } = await actionOf(exchange, { price: PRICE })
    await expect(
      exchange.trader.connect(exchange.admin).updateFunding(actionId, asOf, 0, asOf + 1, report, report),
    ).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
  })

  it('when the market is halted, it reverts with MarketNotOpen', async () => {
    await exchange.trader.connect(exchange.admin).restrictMode(2)
    await pass(exchange, 6)
    await refused({ rate: 0n }, 'MarketNotOpen', [2])
  })

  it('when updates, batches and pauses alternate, the index equals the one that domain/ computes', async () => {
    let index = 0n as FundingIndex
    let running: FundingRate = { rate: 0n as HourlyFunding, validFrom: 0 as Millis, validUntil: 0 as Millis }
    let last = Number((await exchange.trader.clock()).asOf) as Millis
    for (const [at, wait] of [1, 700, 59, 4000, 3, 1234, 60, 2, 900].entries()) {
      await pass(exchange, wait)
      const asOf = (await asOfNext()) as Millis
      index = accrue(index, running, last, asOf)
      if (at % 3 === 2) await trade(exchange, alice, bob, { ...DEAL, steps: 10 })
      else {
        const { lowest, highest } = fundingBounds(exchange.spec, running, PRICE as Price, asOf)
        const rate = (at % 2 === 0 ? highest : lowest) - (at % 2 === 0 ? 7n : -13n)
        const validUntil = asOf + 1 + ((at * 777_777) % HOUR)
        await update({ rate, asOf, validUntil })
        running = { rate: rate as HourlyFunding, validFrom: asOf, validUntil: validUntil as Millis }
      }
      last = asOf
      expect(await indexOf()).to.equal(index)
    }
    expect(index).not.to.equal(0n)
  })
})

describe('updateFunding with trading sessions', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(sessionExchange)
  })
  const update = async (sessionEnd: number, change: Partial<FundingInput> = {}) => {
    const asOf = change.asOf ?? (await nextSecond(exchange)) * 1000
    return setFunding(exchange, {
      price: PRICE,
      rate: 1n,
      asOf,
      sessionEnd,
      validUntil: asOf + 1000,
      ...change,
    })
  }

  it('when the session is running, the rate’s validity may last until its end', async () => {
    const asOf = (await nextSecond(exchange)) * 1000
    const end = asOf + 60_000
    await expect(update(end, { asOf, validUntil: end + 1 }))
      .to.be.revertedWithCustomError(exchange.trader, 'FundingValidityInvalid')
      .withArgs(asOf, end, end + 1)
    await update(end, { validUntil: end })
  })

  it('when the session lasts longer than an hour, the validity is at most an hour', async () => {
    const asOf = (await nextSecond(exchange)) * 1000
    const end = asOf + 2 * HOUR
    await expect(update(end, { asOf, validUntil: asOf + HOUR + 1 }))
      .to.be.revertedWithCustomError(exchange.trader, 'FundingValidityInvalid')
      .withArgs(asOf, asOf + HOUR, asOf + HOUR + 1)
  })

  it('when the session is closed or has just ended, it reverts with SessionClosed', async () => {
    const asOf = (await nextSecond(exchange)) * 1000
    await expect(update(0, { asOf }))
      .to.be.revertedWithCustomError(exchange.trader, 'SessionClosed')
      .withArgs(asOf, 0)
    const next = (await nextSecond(exchange)) * 1000
    await expect(update(next, { asOf: next })).to.be.revertedWithCustomError(exchange.trader, 'SessionClosed')
    await update((await nextSecond(exchange)) * 1000 + 1, {
      validUntil: (await nextSecond(exchange)) * 1000 + 1,
    })
  })

  it('when the session report is stale, ahead or of another feed, it reverts with ReportStale, ReportAhead or SignerUnknown', async () => {
    const asOf = (await nextSecond(exchange)) * 1000
    const stale = { asOf, sessionObservedAt: asOf - 10_001 }
    await expect(update(asOf + HOUR, stale)).to.be.revertedWithCustomError(exchange.trader, 'ReportStale')
    const ahead = { asOf: asOf + 1000, sessionObservedAt: asOf + 3001 }
    await expect(update(asOf + HOUR, ahead)).to.be.revertedWithCustomError(exchange.trader, 'ReportAhead')
    const { actionId, report } = await actionOf(exchange, { price: PRICE })
    const silent = { price: BigInt(asOf + HOUR), observedAt: report.observedAt, proof: report.proof }
    await tick(exchange)
    await expect(
      exchange.trader.updateFunding(actionId, report.observedAt, 1, asOf + 1000, report, silent),
    ).to.be.revertedWithCustomError(exchange.oracle, 'SignerUnknown')
  })
})
