/** A read that waits with a bookmark makes the projector project its shard at once. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BOOKMARK_CHANNEL } from '../../../db/journal.ts'
import { createNotifications } from '../../../db/notifications.ts'
import { waitFor } from '../../support/patience.ts'
import { createUser, startExchange } from '../support/exchange-fixture.ts'

describe('the notice of a waiting bookmark', () => {
  it('when a read waits for a shard, the projector is notified of it, and not when the journal lacks the row', async () => {
    const exchange = await startExchange({ READ_AFTER_WAIT_MS: '3000' })
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const notifications = createNotifications(exchange.url, 'test')
    const heard: string[] = []
    notifications.on(BOOKMARK_CHANNEL, (shard) => heard.push(shard))
    await notifications.start()
    const { body } = await exchange.place(alice)
    const { shard_id, shard_seq } = body.read_after
    const path = `/v0/orders/${body.order.order_id}?read_after_shard_id=${shard_id}&read_after_shard_seq=`
    const beyond = exchange.get(alice, `${path}${Number(shard_seq) + 100}`)
    const waiting = exchange.get(alice, `${path}${shard_seq}`)
    await waitFor(
      async () => heard,
      (shards) => shards.length > 0,
    )
    await exchange.project('m1')
    expect((await waiting).status).to.equal(200)
    expect((await beyond).status).to.equal(503)
    expect(heard).to.deep.equal(['m1'])
    await notifications.stop()
    await exchange.stop()
  })
})
