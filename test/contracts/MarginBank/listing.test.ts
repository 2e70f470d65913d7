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

/** A bank with a listing delay of a week, and a contract to list as a market. */
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
    await time.increaseTo(listableFrom + WINDOW)
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
