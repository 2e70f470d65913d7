/** What funding paid to each account, three ways, after everything that can move a position: batches, the backstop, deleveraging, the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../db/fence.ts'
import type { HourlyFunding } from '../../domain/units.ts'
import { rebuild } from '../../indexer/project/rebuild.ts'
import { unexplainedBalances } from '../../stack/audit/deltas.ts'
import { ActionFixture, RATE } from '../keeper/support/action-fixture.ts'
import { type ChainFixture, useChain } from '../keeper/support/chain-fixture.ts'
import type { Auction } from '../keeper/support/engine-turns.ts'
import type { Trader } from '../keeper/support/market-fixture.ts'
import { restoreChain, saveChain } from '../keeper/support/saved-chain.ts'
import { openTrading } from '../keeper/support/trading.ts'
import { passTime } from '../support/chain-faults.ts'
import { perpetual } from '../support/markets.ts'
import { Auditor } from './support/auditor.ts'

/** Longer than a second, so that funding accrues between two blocks. */
const ACCRUAL_MS = 1_200
const DAY_MS = 86_400_000

describe('the audit of funding', function () {
  this.timeout(180_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let actions: ActionFixture
  let auditor: Auditor
  let auction: Auction
  let settling: Fence
  let traders: readonly Trader[]

  beforeEach(async () => {
    const trading = await openTrading(chain())
    ;({ fixture, auction, settling } = trading)
    traders = [trading.alice, trading.bob, trading.carol, trading.dave]
    actions = new ActionFixture(fixture)
    auditor = await Auditor.start(fixture)
  })

  afterEach(async () => {
    await auditor.stop()
    await fixture.close()
  })

  async function match(long: Trader, short: Trader, steps = 20, leverage = 20): Promise<void> {
    await actions.report(1000)
    await fixture.place({ by: long, side: 'LONG', steps, limit: 1000, leverage })
    await fixture.place({ by: short, side: 'SHORT', steps, limit: 1000, leverage: 5 })
    expect(await auction.run()).to.be.a('number')
  }

  async function settle(): Promise<void> {
    const settlement = fixture.settlement()
    await settlement.start(settling)
    await settlement.settleAll(settling, 60_000)
  }

  const differences = async () => (await auditor.audit(traders)).differences

  const payments = () =>
    fixture.db
      .selectFrom('read.account_transactions')
      .selectAll()
      .where('type', '=', 'funding_payment')
      .orderBy('id')
      .execute()

  const unexplained = () => unexplainedBalances(fixture.db)

  it('when positions trade, are inherited and deleveraged between updates, and a fork takes them back, all agree', async () => {
    const [alice, bob, carol, dave] = traders as [Trader, Trader, Trader, Trader]
    await actions.withBackstop()
    await match(alice, bob)
    await match(carol, bob)
    await actions.updateFunding(1000)
    await settle()
    const saved = await saveChain(chain())

    await sleep(ACCRUAL_MS)
    await actions.updateFunding(1000, (RATE + 7n) as HourlyFunding)
    await sleep(ACCRUAL_MS)
    await match(dave, bob, 30, 5)
    await actions.inherit(alice, 970)
    await actions.deleverage(carol, bob, 20, 949)
    await sleep(ACCRUAL_MS)
    await actions.updateFunding(949, RATE)
    await settle()
    expect(await differences()).to.deep.equal([])
    expect(await unexplained()).to.deep.equal([])
    const paid = await payments()
    // Three accounts at the second update, alice and the backstop, carol, bob three times, dave and the backstop at the last update.
    expect(new Set(paid.map(({ user_id }) => user_id)).size).to.equal(5)
    expect(paid.length).to.be.at.least(9)

    await restoreChain(chain(), saved)
    await fixture.follow()
    expect(await differences(), 'after the fork').to.deep.equal([])
    expect(await unexplained(), 'after the fork').to.deep.equal([])
    expect(await payments(), 'after the fork').to.have.length(0)
    await settle()
    expect(await differences(), 'mined again').to.deep.equal([])
    const again = await payments()
    const keyOf = ({ id, amount }: (typeof paid)[number]): string => `${id} ${amount}`
    expect(again.map(keyOf)).to.deep.equal(paid.map(keyOf))

    await rebuild(fixture.db, { limit: 7, killPoint() {} })
    expect(await payments(), 'rebuilt').to.deep.equal(again)
    expect(await differences(), 'rebuilt').to.deep.equal([])
  })

  it('when a market is frozen, its end pays every position up to the last index, and claims pay nothing more', async () => {
    const [alice, bob] = traders as [Trader, Trader]
    await match(alice, bob)
    await actions.updateFunding(1000)
    await settle()
    const market = fixture.trading().connect(chain().admin)
    await (await market.requestFreeze()).wait()
    await passTime(chain(), DAY_MS + 2_000)
    await (await market.freeze()).wait()
    await fixture.follow()
    expect(await differences()).to.deep.equal([])
    const paid = await payments()
    // The rate ran for its hour.
    const expected = BigInt(20) * RATE
    const received = paid.map(({ user_id, funding_payment_delta }) => [user_id, funding_payment_delta])
    expect(received).to.have.deep.members([
      [alice.account, -expected],
      [bob.account, expected],
    ])

    await passTime(chain(), 4 * DAY_MS)
    for (const { wallet } of [alice, bob]) await (await market.claim(wallet.address)).wait()
    await fixture.follow()
    expect(await differences(), 'after the claims').to.deep.equal([])
    expect(await payments()).to.deep.equal(paid)
    const spans = await fixture.db.selectFrom('read.funding_spans').selectAll().execute()
    expect(spans.map(({ payment }) => payment)).to.deep.equal([0n, 0n])
  })

  it('when a recorded payment is wrong, the audit names the account and the sum that is not zero', async () => {
    const [alice, bob] = traders as [Trader, Trader]
    await match(alice, bob)
    await actions.updateFunding(1000)
    await settle()
    await sleep(ACCRUAL_MS)
    await match(alice, bob)
    await settle()
    expect(await differences()).to.deep.equal([])
    await sql`update read.funding_spans set payment = payment + 1 where user_id = ${bob.account}`.execute(
      fixture.db,
    )
    const found = await differences()
    expect(found).to.have.length(2)
    expect(found[0]).to.match(/funding: contract views \d+, read model \d+, REST \d+$/)
    expect(found[1]).to.match(/^market 1 funding of all accounts: read model 1 instead of 0$/)
  })
})
