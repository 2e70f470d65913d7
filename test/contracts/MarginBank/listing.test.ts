import { expect } from 'chai'
import { keccak256 } from 'ethers'
import { LATCH_WEI } from '../../../stack/deploy.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { FeedMock__factory } from '../../../typechain-types/factories/mocks/FeedMock__factory.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import { chain, wallet } from '../../support/exchange.ts'
import { bankOver } from '../support/tokens.ts'

const DAY = 86_400
const DELAY = 7 * DAY
const WINDOW = 14 * DAY

/** A bank that lists after a week, and a contract that wants to be a market. */
async function strictBank() {
  const { token, access, admin, time } = await bankOver(TestUSDM__factory, 1n)
  const bank = await new MarginBank__factory(admin).deploy(token, access, admin, DELAY, { value: LATCH_WEI })
  const market = await (await new FeedMock__factory(admin).deploy(8)).getAddress()
  const { ethers, networkHelpers } = await chain()
  const codeHash = keccak256(await ethers.provider.getCode(market))
  return { bank, market, codeHash, admin, time, ethers, networkHelpers }
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

  it('when announced, it says what will be listed and when', async () => {
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
  it('when the delay is over, and not a second before, it is listed, once', async () => {
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
  it('when two weeks more have passed, the announcement has lapsed', async () => {
    const { bank, market, time } = at
    const listableFrom = await announce()
    await time.increaseTo(listableFrom + WINDOW)
    await refused(bank.listMarket(market), 'AnnouncementLapsed', market, listableFrom + WINDOW)
    const again = await announce()
    await time.setNextBlockTimestamp(again + WINDOW - 1)
    await bank.listMarket(market)
  })
  it('when never announced, or the announcement was withdrawn', async () => {
    const { bank, market, time } = at
    await refused(bank.listMarket(market), 'MarketNotAnnounced', market)
    await refused(bank.withdrawAnnouncement(market), 'MarketNotAnnounced', market)
    const listableFrom = await announce()
    await expect(bank.withdrawAnnouncement(market)).to.emit(bank, 'AnnouncementWithdrawn').withArgs(market)
    await time.increaseTo(listableFrom)
    await refused(bank.listMarket(market), 'MarketNotAnnounced', market)
  })
  it('when announced again, the time begins anew', async () => {
    const { bank, market, time } = at
    const first = await announce()
    await time.increaseTo(first - 1)
    const second = await announce()
    await refused(bank.listMarket(market), 'ListingEarly', market, second)
  })
  it('when the code is another than announced', async () => {
    const { bank, market, codeHash, time, ethers, networkHelpers } = at
    await time.increaseTo(await announce())
    await networkHelpers.setCode(market, '0x6001')
    const found = keccak256(await ethers.provider.getCode(market))
    await refused(bank.listMarket(market), 'MarketCodeChanged', market, codeHash, found)
  })
  it('when there is no code, or an account that delegates to code', async () => {
    const { bank, networkHelpers } = at
    const { address } = wallet('no market')
    await refused(bank.announceMarket(address), 'MarketWithoutCode', address)
    await networkHelpers.setCode(address, `0xef0100${'11'.repeat(20)}`)
    await refused(bank.announceMarket(address), 'MarketWithoutCode', address)
  })
  it('when the bank is paused at the end of the delay, listing waits', async () => {
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
  it('when the caller has no role', async () => {
    const { bank, market, ethers } = at
    const [, stranger] = await ethers.getSigners()
    const asStranger = bank.connect(stranger)
    for (const call of [
      () => asStranger.announceMarket(market),
      () => asStranger.withdrawAnnouncement(market),
      () => asStranger.listMarket(market),
    ])
      await refused(call(), 'AccessManagedUnauthorized', stranger?.address)
  })
})
