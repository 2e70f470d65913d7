import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ShadowRun } from '../../stack/shadow/shadow-run.ts'
import { MarketFixture } from '../keeper/support/market-fixture.ts'
import { perpetual } from '../support/markets.ts'
import { adoptUsers } from '../support/mirror.ts'

describe('the comparison of tables with the fold of the journal', () => {
  it('when the engine has released an ended order from its memory, the fold still has it, as the tables do', async () => {
    const fixture = await MarketFixture.open(perpetual)
    try {
      await fixture.report(1000)
      const alice = await fixture.trader('alice')
      await fixture.cancel(await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 }))
      await fixture.engine.release()
      const shadow = new ShadowRun(fixture.db)
      await adoptUsers(fixture.db, shadow.state)
      expect(await shadow.compare()).to.deep.equal([])
    } finally {
      await fixture.close()
    }
  })
})
