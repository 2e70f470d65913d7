/** A perpetual that is delisted, and one that is frozen: price of its own feed, deficits, and claims with a haircut. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { perpetual, price } from '../../support/markets.ts'
import { ChainFixture, useChain } from '../support/chain-fixture.ts'
import { EndingFixture } from '../support/ending-fixture.ts'

const DAY_MS = 86_400_000
const WINDOW_MS = 3 * DAY_MS + 60_000

describe('the end of a perpetual', function () {
  this.timeout(90_000)
  const chain = useChain(perpetual)

  /** Dave is long with the highest leverage and alice short, one unit at 100. */
  async function openTraded() {
    const fixture = await ChainFixture.openOn(chain())
    const ending = await EndingFixture.open(fixture)
    await fixture.report(1000)
    const [alice, dave] = [await fixture.depositor('alice'), await fixture.depositor('dave')]
    await fixture.place({ by: dave, side: 'LONG', steps: 1000, limit: 1000, leverage: 20 })
    await fixture.place({ by: alice, side: 'SHORT', steps: 1000, limit: 1000 })
    await fixture.auction().run()
    await ending.until(async () => (await ending.openPositions()) === 2)
    return { fixture, ending, alice, dave }
  }

  type Traded = Awaited<ReturnType<typeof openTraded>>

  /** At 94 dave's margin of 5 is short by 1: alice is paid 25 of 26. Each step is taken by a job that remembers nothing. */
  async function expectPaidOut({ fixture, ending, alice, dave }: Traded): Promise<void> {
    const free = await ending.freeOf(alice)
    const sentBefore = (await ending.transactions()).length
    ending.restart()
    await ending.pass()
    ending.restart()
    await ending.pass()
    await fixture.follow()
    expect((await ending.market()).ended).to.deep.include({ deficit: price('1').toString(), haircut: null })
    expect(await ending.openPositions()).to.equal(1)
    await ending.passTime(WINDOW_MS)
    ending.restart()
    await ending.until(async () => (await ending.openPositions()) === 0)
    ending.restart()
    await ending.pass()
    expect((await ending.transactions()).slice(sentBefore)).to.deep.equal([
      ...['end:1:deficits MINED', `end:1:claim:${alice.account} MINED`],
    ])
    expect((await ending.freeOf(alice)) - free).to.equal(price('25'))
    expect((await ending.market()).ended?.haircut).to.deep.equal({
      ...{ pool: price('25').toString(), owed: price('26').toString() },
    })
    const moves = (await fixture.rows('positions_moved')).map(({ cause, balances }) => [
      ...[cause, balances.map(({ user_id }: { user_id: number }) => user_id)],
    ])
    expect(moves).to.deep.equal([
      ['insolvency_reported', []],
      ['claimed', [alice.account]],
    ])
    expect(await ending.freeOf(dave)).to.be.below(price('100000'))
  }

  it('when it is delisted, it ends at the report of its own feed nearest to the close, and its claims are paid with a haircut', async () => {
    const traded = await openTraded()
    const { fixture, ending } = traded
    await ending.publish('index', price('99'))
    await ending.close()
    await ending.pass()
    expect([ending.isMissing, await ending.transactions()], 'no report from before the close').to.deep.equal([
      ...[true, []],
    ])
    const nearest = await ending.publish('index', price('94'))
    await ending.passTime(5_000)
    await ending.publish('index', price('90'))
    await ending.pass()
    await fixture.follow()
    expect((await ending.market()).final_report).to.include({
      ...{ price: nearest.price.toString(), observed_at: nearest.observedAt },
    })
    await ending.passTime(DAY_MS)
    await ending.until(async () => (await ending.market()).mode === 'settled')
    expect((await ending.market()).ended?.how).to.equal('finalized')
    await expectPaidOut(traded)
    await fixture.close()
  })

  it('when it is frozen, its deficits are reported and its claims paid in the same way', async () => {
    const traded = await openTraded()
    const { fixture, ending } = traded
    const market = fixture.trading().connect(chain().admin)
    await ending.passTime(10_000)
    await (await market.requestFreeze()).wait()
    await ending.passTime(DAY_MS - 5_000)
    const { price: last, observedAt, signatures: proof } = await ending.publish('index', price('94'))
    await (await market.poke({ price: last, observedAt, proof })).wait()
    await ending.passTime(10_000)
    await (await market.freeze()).wait()
    await fixture.follow()
    expect((await ending.market()).ended).to.include({ how: 'frozen', price: price('94').toString() })
    await expectPaidOut(traded)
    await fixture.close()
  })

  it('when the bank is paused before the first claim, the claims wait until a day after the pause', async () => {
    const traded = await openTraded()
    const { fixture, ending, alice } = traded
    await ending.close()
    await ending.publish('index', price('98'))
    await ending.pass()
    await ending.passTime(DAY_MS + 10_000)
    await ending.until(async () => (await ending.market()).mode === 'settled')
    await ending.passTime(3 * DAY_MS - 60_000)
    const bank = MarginBank__factory.connect(chain().shared.marginBank, chain().admin)
    await (await bank.pause()).wait()
    const { endsAt } = await bank.lastPause()
    const pauseMs = Number(endsAt) * 1000 - fixture.clock.value
    const sent = await ending.transactions()
    for (const wait of [120_000, pauseMs, DAY_MS - 200_000]) {
      await ending.passTime(wait)
      await ending.pass()
      expect(await ending.transactions()).to.deep.equal(sent)
    }
    await ending.passTime(300_000)
    await ending.until(async () => (await ending.openPositions()) === 0)
    expect((await ending.transactions()).slice(sent.length)[0]).to.equal(`end:1:claim:${alice.account} MINED`)
    await fixture.close()
  })

  it('when its final report is reverted, a later one is submitted', async () => {
    const { fixture, ending } = await openTraded()
    await ending.close()
    await ending.publish('index', price('98'), price('97'))
    await ending.pass()
    await ending.pass()
    expect(await ending.transactions()).to.deep.equal(['end:1:report REVERTED'])
    await ending.passTime(40_000)
    await ending.pass()
    expect(await ending.transactions(), 'the same report is not sent again').to.have.length(1)
    const later = await ending.publish('index', price('98'))
    await ending.until(async () => (await ending.market()).final_report !== null)
    expect((await ending.market()).final_report?.observed_at).to.equal(later.observedAt)
    expect(await ending.transactions()).to.deep.equal(['end:1:report REVERTED', 'end:1:report MINED'])
    const [{ error }] = ending.errors as [{ error: string }]
    expect(error).to.match(/^SignerUnknown\(/)
    await fixture.close()
  })
})
