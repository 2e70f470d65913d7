import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { checkFence, type Fence } from '../../db/fence.ts'
import { createLeases, type Leases } from '../../db/leases.ts'
import { MarketFixture } from '../keeper/support/market-fixture.ts'
import { perpetual } from '../support/markets.ts'

const LIFE_MS = 60_000

describe('the leases of a process', () => {
  let fixture: MarketFixture
  let leases: Leases
  let fences: Fence[]

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    leases = createLeases(fixture.db, 'one', LIFE_MS)
    fences = []
    for (const name of ['a', 'b', 'c']) fences.push((await leases.acquire(name)) as Fence)
  })

  afterEach(() => fixture.close())

  const expireAll = () => fixture.db.updateTable('leases').set({ expires_at: 0 }).execute()
  const live = async (): Promise<string[]> => {
    const query = fixture.db.selectFrom('leases').select('name').where('expires_at', '>', 0)
    return (await query.orderBy('name').execute()).map(({ name }) => name)
  }
  const renewAll = () => fences.map((fence) => leases.renew(fence))

  it('when they are renewed together, each that is still its own is renewed, and the lost one is not', async () => {
    await expireAll()
    await createLeases(fixture.db, 'another', 0).acquire('b')
    await expireAll()
    expect(await Promise.all(renewAll())).to.deep.equal([true, false, true])
    expect(await live()).to.deep.equal(['a', 'c'])
  })

  it('when another process looks for a lease under which a transaction runs, it does not wait for that transaction', async () => {
    const standby = createLeases(fixture.db, 'another', LIFE_MS)
    await fixture.db.transaction().execute(async (tx) => {
      await checkFence(tx, fences[1] as Fence)
      expect(await Promise.all(['a', 'b', 'c'].map((name) => standby.acquire(name)))).to.deep.equal([
        null,
        null,
        null,
      ])
    })
    await expireAll()
    const acquired = await Promise.all(['a', 'b', 'd'].map((name) => standby.acquire(name)))
    expect(acquired.map((fence) => fence?.token)).to.deep.equal([2, 2, 1])
  })

  it('when a transaction under one lease runs, all other leases are renewed before it ends, and this lease after it', async () => {
    await expireAll()
    let last: Promise<boolean> | undefined
    await fixture.db.transaction().execute(async (tx) => {
      await checkFence(tx, fences[1] as Fence)
      const [first, second, third] = renewAll()
      last = second
      expect(await Promise.all([first, third])).to.deep.equal([true, true])
      expect(await live()).to.deep.equal(['a', 'c'])
    })
    expect(await last).to.equal(true)
    expect(await live()).to.deep.equal(['a', 'b', 'c'])
  })
})
