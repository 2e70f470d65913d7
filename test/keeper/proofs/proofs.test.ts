import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { type Fence, LeaseLost } from '../../../db/fence.ts'
import { deleteOldInputs } from '../../../keeper/proofs/proofs.ts'
import { createProofStore } from '../../../keeper/proofs/store.ts'
import { perpetual } from '../../support/markets.ts'
import { loginOf } from '../../support/postgres.ts'
import { loadInputs } from '../../support/rows/batches.ts'
import { createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { MarketFixture, RULES } from '../support/market-fixture.ts'
import { mineOldestPart } from '../support/mine-part.ts'

const DAY = 86_400_000

describe('the retention of proofs', () => {
  let fixture: MarketFixture
  let fence: Fence
  /** Connected with the role of the process. */
  let keeper: Db

  before(async () => {
    fixture = await MarketFixture.open(perpetual)
    keeper = createDb(
      createPool({ url: await loginOf(fixture.url, 'keeper'), connections: 1, name: 'keeper test' }),
    )
    const [alice, bob] = [await fixture.trader('alice'), await fixture.trader('bob')]
    fence = await fixture.lease('m1')
    const auction = createAuction(
      fixture.turnPorts(),
      perpetual,
      createMarketMemory({ ...RULES, kind: perpetual.kind }),
    )
    for (let batch = 1; batch <= 3; batch++) {
      await fixture.report(1000)
      await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 })
      await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
      expect(await auction.run()).to.equal(batch)
      await mineOldestPart(fixture)
      fixture.clock.value += DAY
    }
  })
  after(async () => {
    await keeper.destroy()
    await fixture.close()
  })

  const kept = async (): Promise<number[]> => {
    const found: number[] = []
    for (const batch of [1, 2, 3])
      if ((await loadInputs(fixture.db, perpetual.marketId, batch)) !== undefined) found.push(batch)
    return found
  }
  const ports = () => ({ store: createProofStore(keeper), clock: fixture.clock })

  it('when no batch is old enough, all inputs are kept', async () => {
    expect(await deleteOldInputs(ports(), 90, fence)).to.be.greaterThan(1_000)
    expect(await kept()).to.deep.equal([1, 2, 3])
  })

  it('when more inputs are old than one turn deletes, the oldest go first and the next turn follows at once', async () => {
    expect(await ports().store.deleteInputs(fence, fixture.clock.now(), 1)).to.equal(1)
    expect(await kept()).to.deep.equal([2, 3])
  })

  it('when batches are older than the retention, their inputs are deleted and the batches stay', async () => {
    await deleteOldInputs(ports(), 2, fence)
    expect(await kept()).to.deep.equal([3])
    const { count } = await fixture.db
      .selectFrom('batches')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    expect(Number(count)).to.equal(3)
  })

  it('when the lease is lost, nothing is deleted', async () => {
    const stale = { ...fence, token: fence.token - 1 }
    const error = await deleteOldInputs(ports(), 0, stale).catch((reason: unknown) => reason)
    expect(error).to.be.instanceOf(LeaseLost)
    expect(await kept()).to.deep.equal([3])
  })
})
