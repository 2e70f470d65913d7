import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

const DAY = 86_400
const nowSeconds = (): number => Math.floor(Date.now() / 1000)

describe('orders signed by a session key', () => {
  let exchange: ExchangeFixture
  let alice: User
  let keys = 0
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
  })
  after(() => exchange.stop())

  interface KeyState {
    readonly permissions?: number
    readonly expires_at?: number
    readonly revoked_at?: number | null
  }
  /** Stores a session key as the indexer does. */
  async function register(owner: User, state: KeyState = {}): Promise<Wallet> {
    const key = new Wallet(id(`key ${++keys}`))
    const values = {
      permissions: 3,
      registered_at: nowSeconds(),
      expires_at: nowSeconds() + 30 * DAY,
      revoked_at: null,
      ...state,
    }
    await exchange.db
      .insertInto('session_keys')
      .values({ owner: owner.address, key: key.address.toLowerCase(), block: 1, ...values })
      .execute()
    return key
  }

  it('when the key is active, they are accepted and expire with the key', async () => {
    const expires_at = nowSeconds() + 1000
    const signer = await register(alice, { expires_at })
    const { status, body } = await exchange.place(alice, { signer })
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.order).to.include({
      signer: signer.address.toLowerCase(),
      maker: alice.address,
      expiration_seconds: 0,
    })
    const aliveUntil = async (hash: string) =>
      (
        await exchange.db
          .selectFrom('orders')
          .select('alive_until')
          .where('hash', '=', hash)
          .executeTakeFirstOrThrow()
      ).alive_until
    expect(await aliveUntil(body.order.order_hash)).to.equal(expires_at - 1)
    const sooner = await exchange.place(alice, { signer, expiration: expires_at - 500 })
    expect(await aliveUntil(sooner.body.order.order_hash)).to.equal(expires_at - 500)
  })

  it('when a batch mixes signatures of key and owner, all orders are accepted', async () => {
    const signer = await register(alice)
    const orders = [
      signedBody(alice, { signer }).body,
      signedBody(alice).body,
      signedBody(alice, { signer }).body,
    ]
    const { body } = await exchange.send(alice, 'POST', '/v0/orders/place/batch', {
      client_request_id: 'keys',
      mode: 'atomic',
      orders,
    })
    expect(body.results.map((result: { order: { signer: string } }) => result.order.signer)).to.deep.equal([
      signer.address.toLowerCase(),
      alice.address,
      signer.address.toLowerCase(),
    ])
  })

  const refusals: readonly (readonly [string, KeyState, string])[] = [
    ['has been revoked', { revoked_at: 1 }, 'SESSION_KEY_REVOKED'],
    ['has expired', { expires_at: nowSeconds() }, 'SESSION_KEY_EXPIRED'],
    ['may not trade', { permissions: 2 }, 'SESSION_KEY_NOT_PERMITTED'],
  ]
  for (const [what, state, code] of refusals) {
    it(`when the key ${what}, they are rejected with ${code}`, async () => {
      const signer = await register(alice, state)
      const traces = await exchange.state()
      const { status, body } = await exchange.place(alice, { signer })
      expect([status, body.details.code, body.details.field]).to.deep.equal([400, code, 'signature'])
      expect(body.details).to.include({
        recovered_signer: signer.address.toLowerCase(),
        expected_signer: alice.address,
      })
      expect(await exchange.state()).to.deep.equal(traces)
    })
  }

  it('when the key is revoked, they are rejected at once, even by a process that has cached the key', async () => {
    const signer = await register(alice)
    const { body: order } = signedBody(alice, { signer })
    expect((await exchange.send(alice, 'POST', '/v0/orders', order)).status).to.equal(200)
    await exchange.db
      .updateTable('session_keys')
      .set({ revoked_at: nowSeconds() })
      .where('key', '=', signer.address.toLowerCase())
      .execute()
    expect((await exchange.place(alice, { signer })).body.details.code).to.equal('SESSION_KEY_REVOKED')
    // A repetition of an accepted order still returns it.
    expect((await exchange.send(alice, 'POST', '/v0/orders', order)).body).to.include({ is_duplicate: true })
    await exchange.db.deleteFrom('session_keys').where('key', '=', signer.address.toLowerCase()).execute()
    expect((await exchange.place(alice, { signer })).body.details.code).to.equal('SIGNATURE_MISMATCH')
  })

  it('when the key belongs to another account, they are rejected with an explanation of the signature', async () => {
    const bob = await createUser(exchange.db, 'bob')
    const signer = await register(bob)
    const { body } = await exchange.place(alice, { signer })
    expect(body.details).to.include({
      code: 'SIGNATURE_MISMATCH',
      recovered_signer: signer.address.toLowerCase(),
    })
    expect(body.details.digest).to.match(/^0x/)
  })
})
