/** The list of session keys with their status, and orders of a key whose revocation was requested. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Answer, User } from '../support/exchange-fixture.ts'
import { addressOf, freshKey, nowSeconds, useForwardFixture } from '../support/forward-fixture.ts'

describe('session keys', () => {
  const test = useForwardFixture()
  const { newUser } = test
  const list = async (user: User, query = '') =>
    (await test.exchange.get(user, `/v0/session-keys${query}`)).body

  describe('the list', () => {
    let user: User
    const [active, expired, revoked] = [freshKey(), freshKey(), freshKey()]
    before(async () => {
      user = await newUser()
      await test.forward.store(user, active)
      await test.forward.store(user, expired, { permissions: 1, expires_at: nowSeconds() - 5 })
      await test.forward.store(user, revoked, { revoked_at: nowSeconds() - 9, expires_at: nowSeconds() - 5 })
      await test.forward.store(await newUser(), freshKey())
    })

    it('when no status is asked for, it has the history of the caller alone, with times and permissions', async () => {
      const { session_keys: keys } = await list(user)
      expect(keys).to.have.length(3)
      const found = keys.find(
        (key: { session_public_address: string }) => key.session_public_address === addressOf(expired),
      )
      expect(found).to.deep.include({
        session_key_id: `${user.userId}-${addressOf(expired)}`,
        ...{ status: 'EXPIRED', permissions: ['orders'], revoked_at: null },
        ...{ revocation_requested: false, pending_operation_id: null },
      })
      expect(Date.parse(found.registered_at)).to.be.lessThan(Date.now())
    })

    for (const [status, key] of [
      ['ACTIVE', active],
      ['EXPIRED', expired],
      ['REVOKED', revoked],
    ] as const) {
      it(`when ${status} keys are asked for, it has these alone`, async () => {
        const { session_keys: keys } = await list(user, `?status=${status}`)
        expect(
          keys.map((each: Record<string, unknown>) => [each.session_public_address, each.status]),
        ).to.deep.equal([[addressOf(key), status]])
      })
    }

    it('when a range of times is asked for, keys registered at other times are left out', async () => {
      const all = (await list(user)).session_keys as { registered_at: string }[]
      const [newest] = all
      const split = new Date(Date.parse(newest?.registered_at as string)).toISOString()
      const since = (await list(user, `?from=${split}`)).session_keys
      const until = (await list(user, `?to=${split}`)).session_keys
      expect(since.length).to.be.at.least(1)
      expect([...since, ...until]).to.deep.equal(all)
    })

    it('when the list is read in pages, each key is in exactly one page', async () => {
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const page = await list(user, `?limit=1${cursor === null ? '' : `&cursor=${cursor}`}`)
        seen.push(...page.session_keys.map((key: { session_key_id: string }) => key.session_key_id))
        cursor = page.next_cursor
      } while (cursor !== null)
      expect(new Set(seen).size).to.equal(3)
      expect(seen).to.have.length(3)
    })
  })

  it('when a registration is pending, the key is not in the list, and its operation is', async () => {
    const user = await newUser()
    const key = freshKey()
    const { body } = await test.forward.relay(user, await test.forward.body(user, key))
    const { session_keys, pending_operations } = await list(user)
    expect(session_keys).to.deep.equal([])
    expect(pending_operations.map((each: Record<string, unknown>) => each.operation_id)).to.deep.equal([
      body.operation_id,
    ])
    expect((await test.exchange.place(user, { signer: key })).body.details.code).to.equal(
      'SIGNATURE_MISMATCH',
    )
    await test.forward.execute(body.operation_id)
    expect((await list(user)).session_keys[0]).to.include({ status: 'ACTIVE', pending_operation_id: null })
    expect((await test.exchange.place(user, { signer: key })).status).to.equal(200)
  })

  it('when a revocation is requested, orders of the key are refused at once, also if the relay fails; the owner goes on', async () => {
    const user = await newUser()
    const key = freshKey()
    await test.forward.store(user, key)
    expect((await test.exchange.place(user, { signer: key })).status).to.equal(200)
    const { body } = await test.forward.relay(
      user,
      await test.forward.body(user, key, { operation: 'revoke' }),
    )
    const refused = await test.exchange.place(user, { signer: key })
    expect([refused.status, refused.body.details.code]).to.deep.equal([400, 'SESSION_KEY_REVOKING'])
    expect((await test.exchange.place(user)).status).to.equal(200)
    const [listed] = (await list(user)).session_keys
    expect(listed).to.include({
      status: 'ACTIVE',
      revocation_requested: true,
      pending_operation_id: body.operation_id,
    })
    await test.exchange.db
      .updateTable('relay_operations')
      .set({ status: 'FAILED', failure: 'EXPIRED' })
      .where('operation_id', '=', body.operation_id)
      .execute()
    expect((await test.exchange.place(user, { signer: key })).body.details.code).to.equal(
      'SESSION_KEY_REVOKING',
    )
    expect((await list(user)).session_keys[0]).to.include({ status: 'ACTIVE', revocation_requested: true })
    // The owner revokes again.
    const again = await test.forward.body(user, key, { operation: 'revoke', deadline: nowSeconds() + 100 })
    const second = await test.forward.relay(user, again)
    await test.forward.execute(second.body.operation_id)
    expect((await test.exchange.place(user, { signer: key })).body.details.code).to.equal(
      'SESSION_KEY_REVOKED',
    )
    expect((await list(user)).session_keys[0]).to.include({ status: 'REVOKED' })
    // Registered again on the chain: the failed revocation is older than the one that was executed.
    await test.forward.store(user, key)
    expect((await test.exchange.place(user, { signer: key })).status).to.equal(200)
  })

  it('when a revocation and orders of the key arrive together, no order is accepted after the relay', async () => {
    const user = await newUser()
    const key = freshKey()
    await test.forward.store(user, key)
    const revocation = await test.forward.body(user, key, { operation: 'revoke' })
    const orders = Array.from({ length: 20 }, () => test.exchange.place(user, { signer: key }))
    const relayed = test.forward.relay(user, revocation)
    const more = Array.from({ length: 20 }, () => test.exchange.place(user, { signer: key }))
    expect((await relayed).status).to.equal(200)
    const codeOf = ({ status, body }: Answer): string => (status === 200 ? 'accepted' : body.details.code)
    const after = await Promise.all(
      Array.from({ length: 10 }, () => test.exchange.place(user, { signer: key })),
    )
    expect(after.map(codeOf)).to.deep.equal(Array(10).fill('SESSION_KEY_REVOKING'))
    for (const answer of await Promise.all([...orders, ...more]))
      expect(codeOf(answer)).to.be.oneOf(['accepted', 'SESSION_KEY_REVOKING'])
  })
})
