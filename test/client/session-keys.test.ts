/** The client's session keys against an api: it signs only what it asked for, and a repeated relay is the same operation. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { createUser, type ExchangeFixture, startExchange } from '../api/support/exchange-fixture.ts'
import { addressOf, ForwardFixture, freshKey } from '../api/support/forward-fixture.ts'
import { waitFor } from '../support/patience.ts'

describe('client/session-keys, against an exchange', () => {
  let exchange: ExchangeFixture
  let forward: ForwardFixture
  let client: Client
  before(async () => {
    exchange = await startExchange()
    forward = new ForwardFixture(exchange)
    await forward.openLane()
    const baseUrl = await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const { apiKey, wallet } = await createUser(exchange.db, 'alice')
    client = new Client({ baseUrl, apiKey, privateKey: wallet.privateKey })
  })
  after(() => exchange.stop())

  const openOperation = () =>
    waitFor(
      async () => (await client.sessionKeys.list()).pending_operations[0],
      (found) => found !== undefined,
    )

  it('when a key is registered and revoked, each call returns once the chain has it', async () => {
    const key = freshKey()
    const registering = client.sessionKeys.register(key.address)
    await forward.execute((await openOperation())?.operation_id as string)
    expect(await registering).to.include({ status: 'CONFIRMED', operation: 'register' })
    expect((await client.sessionKeys.list({ status: 'ACTIVE' })).session_keys).to.have.length(1)
    const revoking = client.sessionKeys.revoke(key.address)
    await forward.execute((await openOperation())?.operation_id as string)
    expect(await revoking).to.include({ status: 'CONFIRMED', operation: 'revoke' })
    const { session_keys: keys } = await client.sessionKeys.list({ status: 'REVOKED' })
    expect(keys.map(({ session_public_address }) => session_public_address)).to.deep.equal([addressOf(key)])
  })

  it('when the prepared request would do anything else, it is not signed', async () => {
    const { sessionKeys } = client
    const prepared = await sessionKeys.prepare('register', freshKey().address)
    const other = await sessionKeys.prepare('register', freshKey().address)
    for (const changes of [
      { data: other.data },
      { to: prepared.forwarder_address },
      { session_public_address: other.session_public_address },
      { operation: 'revoke' as const },
    ]) {
      const refused = await sessionKeys
        .sign({ ...prepared, ...changes })
        .catch((error: Error) => error.message)
      expect(refused).to.include('not signed')
    }
    expect((await sessionKeys.sign(prepared)).operation_id).to.equal(prepared.operation_id)
  })

  it('when margin nonces are invalidated, the call returns with the minimum once the chain has it', async () => {
    const invalidating = client.marginNonces.invalidate(1, 12)
    const waiting = () =>
      exchange.db
        .selectFrom('relay_operations')
        .select('operation_id')
        .where('kind', '=', 'invalidate_margin_nonces')
        .executeTakeFirst()
    const found = await waitFor(waiting, (row) => row !== undefined)
    await forward.execute(found?.operation_id as string)
    expect(await invalidating).to.include({ success: true, minimum_margin_nonce: '12' })
    expect(await client.marginNonces.minimum(1)).to.include({ minimum_margin_nonce: '12' })
  })

  it('when a signed operation is relayed twice, both answers are the same operation', async () => {
    const { sessionKeys } = client
    const signed = await sessionKeys.sign(await sessionKeys.prepare('register', freshKey().address))
    const [first, second] = [await sessionKeys.relay(signed), await sessionKeys.relay(signed)]
    expect(second).to.deep.equal(first)
    expect(first.operation_id).to.equal(signed.operation_id)
    await forward.execute(first.operation_id, { failure: 'SUPERSEDED', reason: 'another request' })
    expect(await sessionKeys.waitFor(first)).to.include({ status: 'FAILED', failure: 'SUPERSEDED' })
  })
})
