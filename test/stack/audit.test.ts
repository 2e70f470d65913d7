/** The audit while funding runs: markets on a chain, the database that follows it, and the REST answers of an api on it. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../db/fence.ts'
import type { HourlyFunding } from '../../domain/units.ts'
import { ActionFixture, RATE } from '../keeper/support/action-fixture.ts'
import { ChainFixture, useChain } from '../keeper/support/chain-fixture.ts'
import type { Auction } from '../keeper/support/engine-turns.ts'
import type { Trader } from '../keeper/support/market-fixture.ts'
import { perpetual } from '../support/markets.ts'
import { Auditor } from './support/auditor.ts'

describe('stack/audit', function () {
  this.timeout(120_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let actions: ActionFixture
  let traders: readonly Trader[]
  let auditor: Auditor
  let auction: Auction
  let settling: Fence

  beforeEach(async () => {
    fixture = await ChainFixture.openOn(chain())
    actions = new ActionFixture(fixture)
    await actions.report(1000)
    traders = [await fixture.depositor('alice'), await fixture.depositor('bob')]
    auction = fixture.auction()
    settling = await fixture.lease('settle:m1')
    auditor = await Auditor.start(fixture)
  })

  afterEach(async () => {
    await auditor.stop()
    await fixture.close()
  })

  async function settleBatch(steps: number): Promise<void> {
    const [long, short] = traders as [Trader, Trader]
    await fixture.place({ by: long, side: 'LONG', steps, limit: 1000 })
    await fixture.place({ by: short, side: 'SHORT', steps, limit: 1000 })
    await auction.run()
    await settle()
  }

  async function settle(): Promise<void> {
    const settlement = fixture.settlement()
    await settlement.start(settling)
    await settlement.settleAll(settling)
  }

  it('when funding accrues between batches and up to the read, all sources agree to the last wei', async () => {
    await settleBatch(20)
    await actions.updateFunding(1000, (RATE + 7n) as HourlyFunding)
    await settle()
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    await settleBatch(11)
    const { fundingIndex } = await fixture.trading().lastReference()
    expect(fundingIndex).to.not.equal(0n)
    const { positions, differences } = await auditor.audit(traders)
    expect(differences).to.deep.equal([])
    expect(positions).to.equal(2)
  })

  it('when the recorded nonce of a signer at the forwarder is not that of the chain, the audit names it', async () => {
    const [trader] = traders as [Trader, Trader]
    const signer = trader.wallet.address.toLowerCase()
    await fixture.db.insertInto('forwarder_nonces').values({ signer, next_nonce: 2, block: 1 }).execute()
    const { differences } = await auditor.audit(traders)
    expect(differences).to.deep.equal([`signer ${signer} forwarder nonce: chain 0, write side 2`])
  })

  it('when a margin differs while funding runs, the audit names it', async () => {
    await settleBatch(20)
    await actions.updateFunding(1000)
    await settle()
    await auditor.project()
    await fixture.db
      .updateTable('read.positions')
      .set((row) => ({ folded_margin: row('folded_margin', '+', 1n) }))
      .where('size', '>', 0)
      .execute()
    const { differences } = await auditor.audit(traders)
    expect(differences).to.have.length(1)
    expect(differences[0]).to.match(/folded margin: chain \d+, read model \d+, REST \d+$/)
  })
})
