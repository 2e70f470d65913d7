import { expect } from 'chai'
import { getAddress, keccak256 } from 'ethers'
import { LATCH_WEI } from '../../../stack/deploy.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import {
  chain,
  type Exchange,
  futureExchange,
  pair,
  perpetualExchange,
  settle,
  wallet,
} from '../../support/exchange.ts'
import { freeze } from '../support/wind-down.ts'

const DAY = 86_400
const DELAY = 7 * DAY
const WINDOW = 14 * DAY

/** A bank with a listing delay of a week, and a market of another bank to list. */
async function strictBank() {
  const exchange = await perpetualExchange()
  const { usdm, access, admin, spec, connection } = exchange
  const bank = await new MarginBank__factory(admin).deploy(usdm, access, admin, DELAY, { value: LATCH_WEI })
  const market = getAddress(spec.trader)
  const { ethers, networkHelpers } = connection
  const codeHash = keccak256(await ethers.provider.getCode(market))
  return { exchange, bank, market, codeHash, time: networkHelpers.time, ethers, networkHelpers }
}

describe('announceMarket, withdrawAnnouncement, listMarket', () => {
  let at: Awaited<ReturnType<typeof strictBank>>
  beforeEach(async () => {
    at = await (await chain()).networkHelpers.loadFixture(strictBank)
  })
  const refused = (call: Promise<unknown>, error: string, ...args: unknown[]) =>
    expect(call)
      .to.be.revertedWithCustomError(at.bank, error)
      .withArgs(...args)
  const announce = async () => {
    await at.bank.announceMarket(at.market)
    return Number((await at.bank.announcement(at.market)).listableFrom)
  }

  it('when announced, it emits MarketAnnounced with code hash and listing window', async () => {
    const { bank, market, codeHash, time } = at
    const sent = bank.announceMarket(market)
    await sent
    const listableFrom = (await time.latest()) + DELAY
    await expect(sent)
      .to.emit(bank, 'MarketAnnounced')
      .withArgs(market, codeHash, listableFrom, listableFrom + WINDOW)
    expect([...(await bank.announcement(market))]).to.deep.equal([
      codeHash,
      BigInt(listableFrom),
      BigInt(listableFrom + WINDOW),
    ])
    expect((await bank.market(market)).openFrom).to.equal(0n)
    expect(await bank.listingDelay()).to.equal(BigInt(DELAY))
  })
  it('when the delay is over, the market can be listed once; one second earlier it reverts with ListingEarly', async () => {
    const { bank, market, codeHash, time } = at
    const listableFrom = await announce()
    await time.setNextBlockTimestamp(listableFrom - 1)
    await refused(bank.listMarket(market), 'ListingEarly', market, listableFrom)
    await time.setNextBlockTimestamp(listableFrom)
    await expect(bank.listMarket(market)).to.emit(bank, 'MarketListed').withArgs(market, codeHash)
    expect((await bank.market(market)).openFrom).to.equal(BigInt(listableFrom))
    expect(await bank.markets()).to.deep.equal([market])
    await refused(bank.listMarket(market), 'MarketNotAnnounced', market)
    await refused(bank.announceMarket(market), 'MarketAlreadyListed', market)
  })
  it('when two more weeks have passed, it reverts with AnnouncementLapsed', async () => {
    const { bank, market, time } = at
    const listableFrom = await announce()
    await time.setNextBlockTimestamp(listableFrom + WINDOW)
    await refused(bank.listMarket(market), 'AnnouncementLapsed', market, listableFrom + WINDOW)
    const again = await announce()
    await time.setNextBlockTimestamp(again + WINDOW - 1)
    await bank.listMarket(market)
  })
  it('when never announced or the announcement was withdrawn, it reverts with MarketNotAnnounced', async () => {
    const { bank, market, time } = at
    await refused(bank.listMarket(market), 'MarketNotAnnounced', market)
    await refused(bank.withdrawAnnouncement(market), 'MarketNotAnnounced', market)
    const listableFrom = await announce()
    await expect(bank.withdrawAnnouncement(market)).to.emit(bank, 'AnnouncementWithdrawn').withArgs(market)
    await time.increaseTo(listableFrom)
    await refused(bank.listMarket(market), 'MarketNotAnnounced', market)
  })
  it('when announced again, the delay restarts', async () => {
    const { bank, market, time } = at
    const first = await announce()
    await time.increaseTo(first - 1)
    const second = await announce()
    await refused(bank.listMarket(market), 'ListingEarly', market, second)
  })
  it('when the code differs from the announced code, it reverts with MarketCodeChanged', async () => {
    const { bank, market, codeHash, time, ethers, networkHelpers } = at
    await time.increaseTo(await announce())
    await networkHelpers.setCode(market, '0x6001')
    const found = keccak256(await ethers.provider.getCode(market))
    await refused(bank.listMarket(market), 'MarketCodeChanged', market, codeHash, found)
  })
  it('when the address has no code or only a delegation to code, it reverts with MarketWithoutCode', async () => {
    const { bank, networkHelpers } = at
    const { address } = wallet('no market')
    await refused(bank.announceMarket(address), 'MarketWithoutCode', address)
    await networkHelpers.setCode(address, `0xef0100${'11'.repeat(20)}`)
    await refused(bank.announceMarket(address), 'MarketWithoutCode', address)
  })
  it('when the bank is paused at the end of the delay, listing reverts with BankPaused until the pause ends', async () => {
    const { bank, market, time } = at
    const listableFrom = await announce()
    await time.increaseTo(listableFrom - 60)
    await bank.pause()
    const { endsAt } = await bank.lastPause()
    await time.increaseTo(listableFrom)
    await refused(bank.listMarket(market), 'BankPaused', endsAt)
    await time.increaseTo(endsAt)
    await bank.listMarket(market)
  })

  describe('given a market that cannot settle', () => {
    const [OPEN, CANCEL_ONLY, HALTED, SETTLING, SETTLED] = [0, 1, 2, 3, 4]
    const asAdmin = (exchange: Exchange) => exchange.trader.connect(exchange.admin)
    const states: readonly [string, number, number, (exchange: Exchange) => Promise<unknown>][] = [
      [
        'its only operator was revoked',
        OPEN,
        0,
        (exchange) => asAdmin(exchange).revokeOperator(exchange.operator),
      ],
      ['the guardian halted it', HALTED, 1, (exchange) => asAdmin(exchange).restrictMode(HALTED)],
      [
        'a stricter mode is scheduled',
        CANCEL_ONLY,
        1,
        async (exchange) => asAdmin(exchange).scheduleMode(CANCEL_ONLY, await aDayAhead()),
      ],
      [
        'its end is scheduled',
        SETTLING,
        1,
        async (exchange) => asAdmin(exchange).scheduleMode(SETTLING, (await aDayAhead()) * 2),
      ],
      [
        'it is frozen',
        SETTLED,
        1,
        async (exchange) => {
          const [alice, bob] = exchange.users
          await settle(exchange, { price: 500_000, fills: pair(alice!, bob!, 10) })
          await freeze({ exchange })
        },
      ],
    ]
    const aDayAhead = async () => ((await at.time.latest()) + DAY + 60) * 1000
    for (const [state, mode, operators, reach] of states)
      it(`when ${state}, listing reverts with MarketNotReady`, async () => {
        const { exchange, bank, market, time } = at
        const listableFrom = await announce()
        await reach(exchange)
        expect([...(await exchange.trader.readiness())]).to.deep.equal([BigInt(mode), BigInt(operators)])
        await time.increaseTo(listableFrom)
        await refused(bank.listMarket(market), 'MarketNotReady', market, mode, operators)
      })
    it('when it has expired, listing reverts with MarketNotReady', async () => {
      const { time } = at
      const { trader, spec, usdm, access, admin } = await futureExchange()
      const { expiresAt } = await trader.grid()
      await time.increaseTo(expiresAt / 1000n)
      const bank = await new MarginBank__factory(admin).deploy(usdm, access, admin, DELAY, {
        value: LATCH_WEI,
      })
      await bank.announceMarket(trader)
      await time.increase(DELAY)
      await expect(bank.listMarket(trader))
        .to.be.revertedWithCustomError(bank, 'MarketNotReady')
        .withArgs(getAddress(spec.trader), SETTLING, 1)
    })
    it('when its operator is only proposed, listing reverts with MarketNotReady until the operator accepts', async () => {
      const { exchange, bank, market, time } = at
      const { operator } = exchange
      await asAdmin(exchange).revokeOperator(operator)
      await asAdmin(exchange).proposeOperator(operator)
      await time.increaseTo(await announce())
      await refused(bank.listMarket(market), 'MarketNotReady', market, OPEN, 0)
      await exchange.trader.acceptOperator()
      expect([...(await exchange.trader.readiness())]).to.deep.equal([0n, 1n])
      await bank.listMarket(market)
    })
    it('when a proposal is revoked or an operator is revoked twice, the number of operators stays right', async () => {
      const { exchange } = at
      const trader = asAdmin(exchange)
      await trader.proposeOperator(exchange.treasury)
      await trader.revokeOperator(exchange.treasury)
      expect((await trader.readiness())[1]).to.equal(1n)
      for (let time = 0; time < 2; time++) await trader.revokeOperator(exchange.operator)
      expect((await trader.readiness())[1]).to.equal(0n)
    })
  })

  it('when the caller lacks the role, it reverts with AccessManagedUnauthorized', async () => {
    const { bank, market, ethers } = at
    const [, unauthorized] = await ethers.getSigners()
    const asUnauthorized = bank.connect(unauthorized)
    for (const call of [
      () => asUnauthorized.announceMarket(market),
      () => asUnauthorized.withdrawAnnouncement(market),
      () => asUnauthorized.listMarket(market),
    ])
      await refused(call(), 'AccessManagedUnauthorized', unauthorized?.address)
  })
})
