/** A future from its close to its last payout: final report, correction, finalization, claims, each under a fault. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { LeaseLost } from '../../../db/fence.ts'
import { future, price } from '../../support/markets.ts'
import { ChainFixture, useChain } from '../support/chain-fixture.ts'
import { EndingFixture } from '../support/ending-fixture.ts'
import { restoreChain, type SavedChain, saveChain } from '../support/saved-chain.ts'

const DAY_MS = 86_400_000
const WINDOW_MS = 3 * DAY_MS + 60_000

describe('the end of a future', function () {
  this.timeout(90_000)
  const chain = useChain(future)

  /** Alice is long and bob short, at 100. */
  async function openTraded() {
    const fixture = await ChainFixture.openOn(chain())
    const ending = await EndingFixture.open(fixture)
    await fixture.report(200)
    const [alice, bob] = [await fixture.depositor('alice'), await fixture.depositor('bob')]
    await fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 200 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 200 })
    await fixture.auction().run()
    await ending.until(async () => (await ending.openPositions()) === 2)
    return { fixture, ending, alice, bob }
  }

  const save = (): Promise<SavedChain> => saveChain(chain())
  async function goBackTo(state: SavedChain): Promise<void> {
    await restoreChain(chain(), state)
    await chain().provider.send('evm_mine', [])
  }

  type Traded = Awaited<ReturnType<typeof openTraded>>

  const isEnded = async (ending: EndingFixture) => (await ending.market()).mode === 'settled'

  async function end({ ending }: Traded): Promise<void> {
    await ending.close()
    await ending.publish('final', price('110'))
    await ending.pass()
    await ending.passTime(DAY_MS + 10_000)
    await ending.until(() => isEnded(ending))
  }

  it('when it has closed, its final price is submitted once, and again when the feed is corrected', async () => {
    const { fixture, ending } = await openTraded()
    await ending.pass()
    expect(await ending.transactions(), 'nothing before the close').to.deep.equal([])
    await ending.close()
    await ending.pass()
    expect([ending.isMissing, (await ending.market()).final_report]).to.deep.equal([true, null])

    await ending.publish('final', price('150'))
    await ending.pass()
    // The indexer has not followed yet, and another process continues.
    ending.restart()
    await ending.pass()
    await fixture.follow()
    await ending.pass()
    expect(await ending.transactions()).to.deep.equal(['end:2:report MINED'])
    expect([ending.isMissing, (await ending.market()).final_report?.price]).to.deep.equal([
      ...[false, price('150').toString()],
    ])
    await ending.passTime(60_000)
    // The same price again is no reason to submit it.
    await ending.publish('final', price('150'))
    await ending.pass()
    await ending.publish('final', price('110'))
    await ending.pass()
    await fixture.follow()
    const { final_report } = await ending.market()
    expect(final_report?.price).to.equal(price('110').toString())
    const rows = await fixture.rows('final_price_reported')
    expect(rows.map(({ report, before }) => [report.reported_at, before?.price ?? null])).to.deep.equal([
      [final_report?.reported_at, null],
      [final_report?.reported_at, price('150').toString()],
    ])
    await fixture.close()
  })

  it('when a fork takes back its final report or its end, both happen again', async () => {
    const { fixture, ending } = await openTraded()
    await ending.close()
    const open = await save()
    await ending.publish('final', price('110'))
    await ending.until(async () => (await ending.market()).final_report !== null)
    await goBackTo(open)
    await fixture.follow()
    expect((await ending.market()).final_report, 'taken back by a fork').to.equal(null)
    await ending.until(async () => (await ending.market()).final_report !== null)
    expect(await ending.transactions()).to.deep.equal(['end:2:report MINED'])

    await ending.passTime(DAY_MS + 10_000)
    const closed = await save()
    await ending.until(() => isEnded(ending))
    expect((await ending.market()).ended).to.include({ how: 'finalized', price: price('110').toString() })
    await goBackTo(closed)
    await fixture.follow()
    expect((await ending.market()).ended, 'taken back by a fork').to.equal(null)
    ending.restart()
    await ending.until(() => isEnded(ending))
    const kinds = (await fixture.actions()).map(({ kind, status }) => `${kind} ${status}`)
    expect(kinds).to.deep.equal(['settle_part MINED', 'finalize_market MINED'])
    await fixture.close()
  })

  it('when it has ended, each account is paid once after the window for deficits, also if a fork takes the payouts back', async () => {
    const traded = await openTraded()
    const { fixture, ending, alice, bob } = traded
    await end(traded)
    const free = [await ending.freeOf(alice), await ending.freeOf(bob)]
    await ending.pass()
    expect(await ending.transactions(), 'no claim within the window').to.deep.equal(['end:2:report MINED'])
    await ending.passTime(WINDOW_MS)
    const unpaid = await save()
    await ending.pass()
    await ending.pass()
    const claims = [`end:2:claim:${alice.account} MINED`, `end:2:claim:${bob.account} MINED`]
    expect((await ending.transactions()).slice(1)).to.deep.equal(claims)
    await fixture.follow()
    await goBackTo(unpaid)
    await fixture.follow()
    expect(await ending.openPositions(), 'the fork has taken the payouts back').to.equal(2)
    ending.restart()
    await ending.until(async () => (await ending.openPositions()) === 0)
    expect((await ending.transactions()).slice(1), 'the same claims again').to.deep.equal(claims)

    const paid = [await ending.freeOf(alice), await ending.freeOf(bob)].map(
      (after, at) => after - (free[at] as bigint),
    )
    // Margins of 4 each, and 2 gained by the long: 0.2 of 100 at leverage 5, and a price of 110.
    expect(paid).to.deep.equal([price('6'), price('2')])
    expect((await ending.market()).ended?.haircut).to.deep.equal({
      ...{ pool: price('8').toString(), owed: price('8').toString() },
    })
    await fixture.close()
  })

  it('when another account submits the final price, finalizes and claims, nothing is left to do and nothing breaks', async () => {
    const { fixture, ending, alice, bob } = await openTraded()
    const market = fixture.trading().connect(chain().admin)
    await ending.close()
    const { price: final, observedAt, signatures: proof } = await ending.publish('final', price('90'))
    await (await market.submitFinalReport({ price: final, observedAt, proof })).wait()
    await ending.passTime(DAY_MS + 10_000)
    const block = await chain().provider.getBlock('latest')
    const { actionId } = await market.clock()
    await (await market.finalizeMarket(actionId + 1n, (block?.timestamp ?? 0) * 1000)).wait()
    await ending.pass()
    await fixture.follow()
    await ending.passTime(WINDOW_MS)
    await (await market.claim(alice.wallet.address)).wait()
    await ending.pass()
    await ending.until(async () => (await ending.openPositions()) === 0)
    // The claim of alice was sent before the indexer had followed that of the other account.
    expect(await ending.transactions()).to.deep.equal([
      ...[`end:2:claim:${alice.account} REVERTED`, `end:2:claim:${bob.account} MINED`],
    ])
    await fixture.close()
  })

  it('when another keeper owns the lease, the first one sends and stores nothing any more', async () => {
    const { fixture, ending } = await openTraded()
    await ending.close()
    await ending.publish('final', price('110'))
    await fixture.db
      .updateTable('leases')
      .set({ owner: 'another keeper', token: 9 })
      .where('name', '=', 'ending')
      .execute()
    const refused = await ending.pass().then(
      () => null,
      (error: unknown) => error,
    )
    expect(refused).to.be.instanceOf(LeaseLost)
    expect(await ending.transactions()).to.deep.equal([])
    await fixture.close()
  })
})
