/** Preparing and relaying registrations and revocations: exact requests, idempotence, and what bad input gets. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { MOST_ACTIVE_KEYS, MOST_OPEN_RELAYS } from '../../../domain/session-keys/session-key.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { digestOfForward } from '../../support/forward-request.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import {
  addressOf,
  FORWARDER,
  ForwardFixture,
  freshKey,
  MANAGER,
  nowSeconds,
} from '../support/forward-fixture.ts'

const manager = AccountManager__factory.createInterface()

describe('relaying session keys', () => {
  let exchange: ExchangeFixture
  let forward: ForwardFixture
  let users = 0
  before(async () => {
    exchange = await startExchange()
    forward = new ForwardFixture(exchange)
  })
  after(() => exchange.stop())
  const newUser = (): Promise<User> => createUser(exchange.db, `owner ${++users}`)
  const codeOf = ({ status, body }: Answer) => [status, body.details?.code]

  it('when no relayer runs, also if one has run before, prepare and relay answer RELAY_UNAVAILABLE', async () => {
    const user = await newUser()
    const key = freshKey()
    const answer = await forward.prepare(user, key)
    expect(codeOf(answer)).to.deep.equal([503, 'RELAY_UNAVAILABLE'])
    await forward.openLane()
    const body = await forward.body(user, key)
    await forward.openLane(-1)
    expect(codeOf(await forward.prepare(user, key))).to.deep.equal([503, 'RELAY_UNAVAILABLE'])
    expect(codeOf(await forward.relay(user, body))).to.deep.equal([503, 'RELAY_UNAVAILABLE'])
    await forward.openLane()
    expect((await forward.relay(user, body)).status).to.equal(200)
  })

  it('when no relayer runs, a revocation is accepted, and counts at once', async () => {
    const user = await newUser()
    const key = freshKey()
    await forward.store(user, key)
    await forward.openLane(-1)
    const { status, body } = await forward.relay(user, await forward.body(user, key, { operation: 'revoke' }))
    await forward.openLane()
    expect([status, body.status]).to.deep.equal([200, 'QUEUED'])
    const [listed] = (await exchange.get(user, '/v0/session-keys')).body.session_keys
    expect(listed).to.include({ revocation_requested: true })
  })

  it('when a registration is prepared twice, both answers are the same request, and nothing is stored', async () => {
    const user = await newUser()
    const key = freshKey()
    const [first, second] = [await forward.prepare(user, key), await forward.prepare(user, key)]
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
    const found = await exchange.get(user, `/v0/session-keys/operations/${operation_id}`)
    expect(codeOf(found)).to.deep.equal([404, 'OPERATION_NOT_FOUND'])
  })

  it('when a signed registration is relayed, it is QUEUED, and repeating it in any state answers the same operation', async () => {
    const user = await newUser()
    const key = freshKey()
    const body = await forward.body(user, key)
    const { status, body: answer } = await forward.relay(user, body)
    expect(status, JSON.stringify(answer)).to.equal(200)
    expect(answer).to.include({ status: 'QUEUED', operation: 'register', failure: null, tx_hash: null })
    const { body: prepared } = await forward.prepare(user, key)
    expect(prepared.operation_id).to.equal(answer.operation_id)
    const both = await Promise.all([forward.relay(user, body), forward.relay(user, body)])
    expect(both.map((each) => each.body.operation_id)).to.deep.equal(Array(2).fill(answer.operation_id))
    await forward.execute(answer.operation_id)
    expect((await forward.relay(user, body)).body).to.include({ status: 'CONFIRMED' })
    const found = await exchange.get(user, `/v0/session-keys/operations/${answer.operation_id}`)
    expect(found.body).to.deep.equal((await forward.relay(user, body)).body)
    const rows = await exchange.db
      .selectFrom('relay_operations')
      .select('operation_id')
      .where('user_id', '=', user.userId)
      .execute()
    expect(rows).to.have.length(1)
  })

  it('when the same request is relayed twice at once, there is one operation', async () => {
    const user = await newUser()
    const body = await forward.body(user, freshKey())
    const answers = await Promise.all(Array.from({ length: 4 }, () => forward.relay(user, body)))
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(4).fill(200))
    expect(new Set(answers.map((each) => each.body.operation_id)).size).to.equal(1)
  })

  it('when another account reads an operation, it is answered as unknown', async () => {
    const [user, other] = [await newUser(), await newUser()]
    const { body } = await forward.relay(user, await forward.body(user, freshKey()))
    const path = `/v0/session-keys/operations/${body.operation_id}`
    expect(codeOf(await exchange.get(other, path))).to.deep.equal([404, 'OPERATION_NOT_FOUND'])
    expect((await exchange.get(user, path)).status).to.equal(200)
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
        const traces = await exchange.state()
        const { status, body } = await forward.relay(user, await forward.body(user, key, changes))
        expect([status, body.details.code, body.details.field]).to.deep.equal(expected)
        expect(await exchange.state()).to.deep.equal(traces)
      })
    }

    it('when a field that the server sets is sent, it is refused by name', async () => {
      const body = await forward.body(user, key)
      for (const field of ['permissions', 'expiration_seconds']) {
        const answer = await forward.relay(user, { ...body, [field]: 3 })
        expect([answer.status, answer.body.details.code, answer.body.details.field]).to.deep.equal([
          400,
          'UNKNOWN_FIELD',
          field,
        ])
        expect(answer.body.details.hint).to.include('the server sets it')
      }
    })

    it('when fields of prepare are sent back, they must be unchanged', async () => {
      const body = await forward.body(user, key)
      const changed = await forward.relay(user, { ...body, chain_id: 1 })
      expect([changed.body.details.code, changed.body.details.field]).to.deep.equal([
        'INVALID_FIELD',
        'chain_id',
      ])
      const { body: prepared } = await forward.prepare(user, key)
      const { operation_id, ...echoed } = prepared
      const answer = await forward.relay(user, { ...echoed, ...body })
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
      expect(answer.body.operation_id).to.equal(operation_id)
    })

    it('when the signature is malformed, its fault is named', async () => {
      const body = await forward.body(user, freshKey())
      for (const [signature, code] of [
        ['0x12', 'SIGNATURE_FORMAT'],
        [`${body.signature}01`, 'SIGNATURE_FORMAT'],
        [`${String(body.signature).slice(0, -2)}05`, 'SIGNATURE_V'],
      ]) {
        const answer = await forward.relay(user, { ...body, signature })
        expect(answer.body.details.code).to.equal(code)
      }
    })
  })

  it('when the chain has executed the nonce, or another open request has it, each has its own code', async () => {
    const user = await newUser()
    const [one, two] = [freshKey(), freshKey()]
    const late = await forward.body(user, two)
    const { body } = await forward.relay(user, await forward.body(user, one))
    expect(codeOf(await forward.relay(user, late))).to.deep.equal([409, 'FORWARD_NONCE_TAKEN'])
    await forward.execute(body.operation_id)
    expect(codeOf(await forward.relay(user, late))).to.deep.equal([409, 'FORWARD_NONCE_USED'])
    expect((await forward.relay(user, await forward.body(user, two))).status).to.equal(200)
  })

  it('when an operation has failed, its nonce is prepared again before those of later operations', async () => {
    const user = await newUser()
    const first = await forward.relay(user, await forward.body(user, freshKey()))
    const second = await forward.relay(user, await forward.body(user, freshKey()))
    expect([first.body.nonce, second.body.nonce]).to.deep.equal([0, 1])
    await exchange.db
      .updateTable('relay_operations')
      .set({ status: 'FAILED', failure: 'EXPIRED' })
      .where('operation_id', '=', first.body.operation_id)
      .execute()
    expect((await forward.prepare(user, freshKey())).body.nonce).to.equal(0)
  })

  it('when the key may not be registered, the reason has its own code', async () => {
    const user = await newUser()
    const [active, expired, revoked, foreign] = [freshKey(), freshKey(), freshKey(), freshKey()]
    await forward.store(user, active)
    await forward.store(user, expired, { expires_at: nowSeconds() - 1 })
    await forward.store(user, revoked, { revoked_at: 5 })
    const detailsOf = async (address: string) => {
      const sent = { session_public_address: address, operation: 'register' }
      const { status, body } = await exchange.send(user, 'POST', '/v0/session-keys/prepare', sent)
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
      expect((await forward.relay(user, await forward.body(user, freshKey()))).status).to.equal(200)
    expect(codeOf(await forward.relay(user, await forward.body(user, freshKey())))).to.deep.equal([
      429,
      'RELAY_LIMIT',
    ])
    for (let n = MOST_OPEN_RELAYS; n < MOST_ACTIVE_KEYS; n++) await forward.store(user, freshKey())
    expect(codeOf(await forward.prepare(user, freshKey()))).to.deep.equal([409, 'SESSION_KEY_LIMIT'])
  })

  it('when a key is revoked, it must be an own key that is approved, and its id must be sent', async () => {
    const [user, other] = [await newUser(), await newUser()]
    const key = freshKey()
    await forward.store(other, key)
    expect(codeOf(await forward.prepare(user, key, 'revoke'))).to.deep.equal([404, 'SESSION_KEY_NOT_FOUND'])
    const own = freshKey()
    await forward.store(user, own, { expires_at: nowSeconds() - 1 })
    const body = await forward.body(user, own, { operation: 'revoke' })
    const { session_key_id, ...without } = body
    expect((await forward.relay(user, without)).body.details).to.include({
      code: 'MISSING_FIELD',
      field: 'session_key_id',
    })
    const foreign = { ...body, session_key_id: `${other.userId}-${addressOf(own)}` }
    expect((await forward.relay(user, foreign)).body.details).to.include({
      code: 'INVALID_FIELD',
      field: 'session_key_id',
    })
    const accepted = await forward.relay(user, body)
    expect(accepted.body).to.include({ status: 'QUEUED', operation: 'revoke', session_key_id })
    const again = await forward.body(user, own, { operation: 'revoke', deadline: nowSeconds() + 100 })
    expect(codeOf(await forward.relay(user, { ...again, nonce: 1 }))).to.deep.equal([
      400,
      'FORWARD_SIGNATURE_MISMATCH',
    ])
    await forward.execute(accepted.body.operation_id)
    expect(codeOf(await forward.prepare(user, own, 'revoke'))).to.deep.equal([400, 'SESSION_KEY_REVOKED'])
  })

  it('when a second request for the same operation of a key is relayed, it names the open one', async () => {
    const user = await newUser()
    const key = freshKey()
    const { body } = await forward.relay(user, await forward.body(user, key))
    const next = await forward.body(user, key, { nonce: 1 })
    const answer = await forward.relay(user, next)
    expect(answer.body.details).to.include({ code: 'SESSION_KEY_PENDING', operation_id: body.operation_id })
    expect(
      (await forward.relay(user, await forward.body(user, key, { operation: 'revoke' }))).status,
    ).to.equal(200)
  })
})
