/** Preparing and relaying registrations and revocations: exact requests, idempotence, and what bad input gets. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { MOST_ACTIVE_KEYS, MOST_OPEN_RELAYS } from '../../../domain/session-keys/session-key.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { digestOfForward } from '../../support/forward-request.ts'
import { codeOf, type User } from '../support/exchange-fixture.ts'
import {
  addressOf,
  FORWARDER,
  freshKey,
  MANAGER,
  nowSeconds,
  useForwardFixture,
} from '../support/forward-fixture.ts'

const manager = AccountManager__factory.createInterface()

describe('relaying session keys', () => {
  const test = useForwardFixture({}, { isOpen: false })
  const { newUser } = test

  it('when no relayer runs, also if one has run before, prepare and relay answer RELAY_UNAVAILABLE', async () => {
    const user = await newUser()
    const key = freshKey()
    const answer = await test.forward.prepare(user, key)
    expect(codeOf(answer)).to.deep.equal([503, 'RELAY_UNAVAILABLE'])
    await test.forward.openLane()
    const body = await test.forward.body(user, key)
    await test.forward.openLane(-1)
    expect(codeOf(await test.forward.prepare(user, key))).to.deep.equal([503, 'RELAY_UNAVAILABLE'])
    expect(codeOf(await test.forward.relay(user, body))).to.deep.equal([503, 'RELAY_UNAVAILABLE'])
    await test.forward.openLane()
    expect((await test.forward.relay(user, body)).status).to.equal(200)
  })

  it('when no relayer runs, a revocation is accepted, and counts at once', async () => {
    const user = await newUser()
    const key = freshKey()
    await test.forward.store(user, key)
    await test.forward.openLane(-1)
    const { status, body } = await test.forward.relay(
      user,
      await test.forward.body(user, key, { operation: 'revoke' }),
    )
    await test.forward.openLane()
    expect([status, body.status]).to.deep.equal([200, 'QUEUED'])
    const [listed] = (await test.exchange.get(user, '/v0/session-keys')).body.session_keys
    expect(listed).to.include({ revocation_requested: true })
  })

  it('when a registration is prepared twice, both answers are the same request, and nothing is stored', async () => {
    const user = await newUser()
    const key = freshKey()
    const [first, second] = [await test.forward.prepare(user, key), await test.forward.prepare(user, key)]
    expect(first.body).to.deep.equal(second.body)
    const { deadline, operation_id, ...rest } = first.body
    expect(rest).to.deep.equal({
      ...{ from: user.address, to: MANAGER, value: 0, gas: 150_000, nonce: 0 },
      data: manager.encodeFunctionData('registerSessionKey', [key.address, 3]),
      ...{ chain_id: 6343, account_manager_address: MANAGER, forwarder_address: FORWARDER },
      ...{ operation: 'register', session_public_address: addressOf(key) },
      session_key_id: `${user.userId}-${addressOf(key)}`,
    })
    expect(deadline).to.be.within(nowSeconds() + 590, nowSeconds() + 901)
    expect(operation_id).to.equal(digestOfForward(first.body, FORWARDER))
    const found = await test.exchange.get(user, `/v0/session-keys/operations/${operation_id}`)
    expect(codeOf(found)).to.deep.equal([404, 'OPERATION_NOT_FOUND'])
  })

  it('when a signed registration is relayed, it is QUEUED, and repeating it in any state answers the same operation', async () => {
    const user = await newUser()
    const key = freshKey()
    const body = await test.forward.body(user, key)
    const { status, body: answer } = await test.forward.relay(user, body)
    expect(status, JSON.stringify(answer)).to.equal(200)
    expect(answer).to.include({ status: 'QUEUED', operation: 'register', failure: null, tx_hash: null })
    const { body: prepared } = await test.forward.prepare(user, key)
    expect(prepared.operation_id).to.equal(answer.operation_id)
    const both = await Promise.all([test.forward.relay(user, body), test.forward.relay(user, body)])
    expect(both.map((each) => each.body.operation_id)).to.deep.equal(Array(2).fill(answer.operation_id))
    await test.forward.execute(answer.operation_id)
    expect((await test.forward.relay(user, body)).body).to.include({ status: 'CONFIRMED' })
    const found = await test.exchange.get(user, `/v0/session-keys/operations/${answer.operation_id}`)
    expect(found.body).to.deep.equal((await test.forward.relay(user, body)).body)
    const rows = await test.exchange.db
      .selectFrom('relay_operations')
      .select('operation_id')
      .where('user_id', '=', user.userId)
      .execute()
    expect(rows).to.have.length(1)
  })

  it('when the same request is relayed twice at once, there is one operation', async () => {
    const user = await newUser()
    const body = await test.forward.body(user, freshKey())
    const answers = await Promise.all(Array.from({ length: 4 }, () => test.forward.relay(user, body)))
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(4).fill(200))
    expect(new Set(answers.map((each) => each.body.operation_id)).size).to.equal(1)
  })

  it('when another account reads an operation, it is answered as unknown', async () => {
    const [user, other] = [await newUser(), await newUser()]
    const { body } = await test.forward.relay(user, await test.forward.body(user, freshKey()))
    const path = `/v0/session-keys/operations/${body.operation_id}`
    expect(codeOf(await test.exchange.get(other, path))).to.deep.equal([404, 'OPERATION_NOT_FOUND'])
    expect((await test.exchange.get(user, path)).status).to.equal(200)
  })

  describe('requests that are refused', () => {
    let user: User
    before(async () => {
      user = await newUser()
    })
    const key = freshKey()
    const other = freshKey()
    const data = manager.encodeFunctionData('registerSessionKey', [other.address, 3])
    const refusals = [
      ['another key in the calldata', { data }, [400, 'FORWARD_REQUEST_MISMATCH', 'data']],
      [
        'permissions of its own',
        { data: manager.encodeFunctionData('registerSessionKey', [key.address, 1]) },
        [400, 'FORWARD_REQUEST_MISMATCH', 'data'],
      ],
      ['another target', { to: FORWARDER }, [400, 'FORWARD_REQUEST_MISMATCH', 'to']],
      ['another owner', { from: MANAGER }, [403, 'NOT_YOURS', 'from']],
      ['too little gas', { gas: 79_999 }, [400, 'INVALID_FIELD', 'gas']],
      ['too much gas', { gas: 200_001 }, [400, 'INVALID_FIELD', 'gas']],
      ['a deadline in the past', { deadline: nowSeconds() - 1 }, [400, 'FORWARD_DEADLINE', 'deadline']],
      ['a deadline far ahead', { deadline: nowSeconds() + 7_200 }, [400, 'FORWARD_DEADLINE', 'deadline']],
      ['a nonce with a gap', { nonce: 1 }, [409, 'FORWARD_NONCE_GAP', 'nonce']],
      [
        'the signature of another wallet',
        { signer: other },
        [400, 'FORWARD_SIGNATURE_MISMATCH', 'signature'],
      ],
    ] as const
    for (const [what, changes, expected] of refusals) {
      it(`when the request has ${what}, it is refused with ${expected[1]} and nothing is stored`, async () => {
        const traces = await test.exchange.state()
        const { status, body } = await test.forward.relay(user, await test.forward.body(user, key, changes))
        expect([status, body.details.code, body.details.field]).to.deep.equal(expected)
        expect(await test.exchange.state()).to.deep.equal(traces)
      })
    }

    it('when a field that the server sets is sent, it is refused by name', async () => {
      const body = await test.forward.body(user, key)
      for (const field of ['permissions', 'expiration_seconds']) {
        const answer = await test.forward.relay(user, { ...body, [field]: 3 })
        expect([answer.status, answer.body.details.code, answer.body.details.field]).to.deep.equal([
          400,
          'UNKNOWN_FIELD',
          field,
        ])
        expect(answer.body.details.hint).to.include('the server sets it')
      }
    })

    it('when fields of prepare are sent back, they must be unchanged', async () => {
      const body = await test.forward.body(user, key)
      const changed = await test.forward.relay(user, { ...body, chain_id: 1 })
      expect([changed.body.details.code, changed.body.details.field]).to.deep.equal([
        'INVALID_FIELD',
        'chain_id',
      ])
      const { body: prepared } = await test.forward.prepare(user, key)
      const { operation_id, ...echoed } = prepared
      const answer = await test.forward.relay(user, { ...echoed, ...body })
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
      expect(answer.body.operation_id).to.equal(operation_id)
    })

    it('when the signature is malformed, its fault is named', async () => {
      const body = await test.forward.body(user, freshKey())
      for (const [signature, code] of [
        ['0x12', 'SIGNATURE_FORMAT'],
        [`${body.signature}01`, 'SIGNATURE_FORMAT'],
        [`${String(body.signature).slice(0, -2)}05`, 'SIGNATURE_V'],
      ]) {
        const answer = await test.forward.relay(user, { ...body, signature })
        expect(answer.body.details.code).to.equal(code)
      }
    })
  })

  it('when the chain has executed the nonce, or another open request has it, each has its own code', async () => {
    const user = await newUser()
    const [one, two] = [freshKey(), freshKey()]
    const late = await test.forward.body(user, two)
    const { body } = await test.forward.relay(user, await test.forward.body(user, one))
    expect(codeOf(await test.forward.relay(user, late))).to.deep.equal([409, 'FORWARD_NONCE_TAKEN'])
    await test.forward.execute(body.operation_id)
    expect(codeOf(await test.forward.relay(user, late))).to.deep.equal([409, 'FORWARD_NONCE_USED'])
    expect((await test.forward.relay(user, await test.forward.body(user, two))).status).to.equal(200)
  })

  it('when an operation has failed, its nonce is prepared again before those of later operations', async () => {
    const user = await newUser()
    const first = await test.forward.relay(user, await test.forward.body(user, freshKey()))
    const second = await test.forward.relay(user, await test.forward.body(user, freshKey()))
    expect([first.body.nonce, second.body.nonce]).to.deep.equal([0, 1])
    await test.exchange.db
      .updateTable('relay_operations')
      .set({ status: 'FAILED', failure: 'EXPIRED' })
      .where('operation_id', '=', first.body.operation_id)
      .execute()
    expect((await test.forward.prepare(user, freshKey())).body.nonce).to.equal(0)
  })

  it('when the key may not be registered, the reason has its own code', async () => {
    const user = await newUser()
    const [active, expired, revoked, foreign] = [freshKey(), freshKey(), freshKey(), freshKey()]
    await test.forward.store(user, active)
    await test.forward.store(user, expired, { expires_at: nowSeconds() - 1 })
    await test.forward.store(user, revoked, { revoked_at: 5 })
    const detailsOf = async (address: string) => {
      const sent = { session_public_address: address, operation: 'register' }
      const { status, body } = await test.exchange.send(user, 'POST', '/v0/session-keys/prepare', sent)
      return [status, body.details?.code, body.details?.status]
    }
    expect(await detailsOf(active.address)).to.deep.equal([409, 'SESSION_KEY_REGISTERED', 'ACTIVE'])
    expect(await detailsOf(expired.address)).to.deep.equal([409, 'SESSION_KEY_REGISTERED', 'EXPIRED'])
    expect(await detailsOf(revoked.address)).to.deep.equal([409, 'SESSION_KEY_REGISTERED', 'REVOKED'])
    expect(await detailsOf(user.address)).to.deep.equal([400, 'SESSION_KEY_IS_ACCOUNT', undefined])
    expect(await detailsOf((await newUser()).address)).to.deep.equal([
      400,
      'SESSION_KEY_IS_ACCOUNT',
      undefined,
    ])
    expect(await detailsOf(`0x${'0'.repeat(40)}`)).to.deep.equal([400, 'SESSION_KEY_ZERO', undefined])
    expect((await detailsOf(foreign.address))[0]).to.equal(200)
  })

  it('when an account has the most active keys or open operations, further ones are refused', async () => {
    const user = await newUser()
    for (let n = 0; n < MOST_OPEN_RELAYS; n++)
      expect((await test.forward.relay(user, await test.forward.body(user, freshKey()))).status).to.equal(200)
    expect(codeOf(await test.forward.relay(user, await test.forward.body(user, freshKey())))).to.deep.equal([
      429,
      'RELAY_LIMIT',
    ])
    for (let n = MOST_OPEN_RELAYS; n < MOST_ACTIVE_KEYS; n++) await test.forward.store(user, freshKey())
    expect(codeOf(await test.forward.prepare(user, freshKey()))).to.deep.equal([409, 'SESSION_KEY_LIMIT'])
  })

  it('when a key is revoked, it must be an own key that is approved, and its id must be sent', async () => {
    const [user, other] = [await newUser(), await newUser()]
    const key = freshKey()
    await test.forward.store(other, key)
    expect(codeOf(await test.forward.prepare(user, key, 'revoke'))).to.deep.equal([
      404,
      'SESSION_KEY_NOT_FOUND',
    ])
    const own = freshKey()
    await test.forward.store(user, own, { expires_at: nowSeconds() - 1 })
    const body = await test.forward.body(user, own, { operation: 'revoke' })
    const { session_key_id, ...without } = body
    expect((await test.forward.relay(user, without)).body.details).to.include({
      code: 'MISSING_FIELD',
      field: 'session_key_id',
    })
    const foreign = { ...body, session_key_id: `${other.userId}-${addressOf(own)}` }
    expect((await test.forward.relay(user, foreign)).body.details).to.include({
      code: 'INVALID_FIELD',
      field: 'session_key_id',
    })
    const accepted = await test.forward.relay(user, body)
    expect(accepted.body).to.include({ status: 'QUEUED', operation: 'revoke', session_key_id })
    const again = await test.forward.body(user, own, { operation: 'revoke', deadline: nowSeconds() + 100 })
    expect(codeOf(await test.forward.relay(user, { ...again, nonce: 1 }))).to.deep.equal([
      400,
      'FORWARD_SIGNATURE_MISMATCH',
    ])
    await test.forward.execute(accepted.body.operation_id)
    expect(codeOf(await test.forward.prepare(user, own, 'revoke'))).to.deep.equal([
      400,
      'SESSION_KEY_REVOKED',
    ])
  })

  it('when a second request for the same operation of a key is relayed, it names the open one', async () => {
    const user = await newUser()
    const key = freshKey()
    const { body } = await test.forward.relay(user, await test.forward.body(user, key))
    const next = await test.forward.body(user, key, { nonce: 1 })
    const answer = await test.forward.relay(user, next)
    expect(answer.body.details).to.include({ code: 'SESSION_KEY_PENDING', operation_id: body.operation_id })
    expect(
      (await test.forward.relay(user, await test.forward.body(user, key, { operation: 'revoke' }))).status,
    ).to.equal(200)
  })
})
