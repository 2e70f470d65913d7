/** One process owns the follower's lease until it releases it, or no longer renews it. */
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { createLeases } from '../../../db/leases.ts'
import { FollowerLease } from '../../../indexer/adapters/follower-lease.ts'
import { waitFor } from '../../support/patience.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'

const ANY_TIME = { budgetMs: 50_000 }

describe('FollowerLease', () => {
  let test: TestDatabase
  const opened: FollowerLease[] = []
  before(async () => {
    test = await freshDatabase()
  })
  afterEach(async () => {
    for (const lease of opened.splice(0)) await lease.release()
  })
  after(() => test.close())

  function open(owner: string, lifeMs: number): FollowerLease {
    const leases = createLeases(test.db, owner, lifeMs, 'indexer_leases')
    const lease = new FollowerLease({ leases, lifeMs, onError() {} })
    opened.push(lease)
    return lease
  }
  const untilHeld = (lease: FollowerLease) =>
    waitFor(
      () => lease.isHeld(),
      (isHeld) => isHeld,
      ANY_TIME,
    )

  it('when two processes want it, the first owns it until it releases it, and then the second does', async () => {
    const [first, second] = [open('first', 600_000), open('second', 600_000)]
    expect([await first.isHeld(), await second.isHeld(), await first.isHeld()]).to.deep.equal([
      true,
      false,
      true,
    ])
    await first.release()
    expect([await second.isHeld(), await first.isHeld()]).to.deep.equal([true, false])
  })

  it('when the owner renews it, it outlives its life', async () => {
    const lease = open('renewing', 600)
    await untilHeld(lease)
    const expiry = () =>
      test.db.selectFrom('indexer_leases').select(['owner', 'expires_at']).executeTakeFirstOrThrow()
    const first = await expiry()
    await waitFor(
      expiry,
      ({ owner, expires_at }) => owner === 'renewing' && expires_at > first.expires_at,
      ANY_TIME,
    )
  })

  it('when another process owns it, because it was not renewed in time, the former owner notices', async () => {
    const former = open('former', 300)
    await untilHeld(former)
    const taken = { owner: 'latter', expires_at: Date.now() + 600_000 }
    await test.db
      .updateTable('indexer_leases')
      .set((eb) => ({ ...taken, token: eb('token', '+', 1) }))
      .execute()
    await waitFor(
      () => former.isHeld(),
      (isHeld) => !isHeld,
      ANY_TIME,
    )
    await test.db.updateTable('indexer_leases').set({ expires_at: 0 }).execute()
    await untilHeld(former)
  })
})
