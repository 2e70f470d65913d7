/** Raising the lowest valid margin nonce: the answer waits for the chain, and a repetition resolves an unknown outcome. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { digestOfForward, signForward } from '../../support/forward-request.ts'
import { perpetual } from '../../support/markets.ts'
import { waitFor } from '../../support/patience.ts'
import { codeOf, type User } from '../support/exchange-fixture.ts'
import { FORWARDER, nowSeconds, useForwardFixture } from '../support/forward-fixture.ts'

const market = IsolatedTrader__factory.createInterface()

describe('invalidating margin nonces', () => {
  const test = useForwardFixture({ RELAY_WAIT_MS: '400' })
  const { newUser } = test

  async function bodyOf(user: User, minimum: number, changes: Record<string, unknown> = {}) {
    const request = {
      ...{ from: user.address, to: perpetual.trader, value: 0, gas: 150_000, nonce: 0 },
      deadline: nowSeconds() + 600,
      data: market.encodeFunctionData('invalidateMarginNonces', [minimum]),
      ...changes,
    }
    const { value: _, ...sent } = request
    const signature = await signForward(user.wallet, request, FORWARDER)
    const id = digestOfForward(request, FORWARDER)
    return { id, body: { market_id: perpetual.marketId, new_minimum: `${minimum}`, ...sent, signature } }
  }
  const send = (user: User, body: unknown) =>
    test.exchange.send(user, 'POST', '/v0/account/invalidate-margin-nonces', body)
  const minimumOf = (user: User, address = user.address) =>
    test.exchange.get(
      user,
      `/v0/account/minimum-margin-nonce?market_id=${perpetual.marketId}&address=${address}`,
    )
  const accepted = (id: string) =>
    waitFor(
      () =>
        test.exchange.db
          .selectFrom('relay_operations')
          .select('status')
          .where('operation_id', '=', id)
          .executeTakeFirst(),
      (row) => row !== undefined,
    )

  it('when the chain executes the request, it answers with the minimum and the transaction', async () => {
    const user = await newUser()
    const { id, body } = await bodyOf(user, 9)
    const answer = send(user, body)
    await accepted(id)
    await test.forward.execute(id)
    const expected = { market_id: 1, perpetual_address: perpetual.trader, minimum_margin_nonce: '9' }
    expect((await answer).body).to.deep.equal({ success: true, ...expected, tx_hash: `0x${'ab'.repeat(32)}` })
    expect((await minimumOf(user)).body).to.deep.equal({
      ...expected,
      address: user.address,
      next_forward_nonce: 1,
    })
    expect((await send(user, body)).body).to.deep.equal((await answer).body)
    const { body: lower } = await bodyOf(user, 9, { nonce: 1 })
    expect(codeOf(await send(user, lower))).to.deep.equal([409, 'MARGIN_NONCE_NOT_RAISED'])
  })

  it('when the chain does not execute it in time, it answers RELAY_PENDING with the id, and the same request resolves it', async () => {
    const user = await newUser()
    const { id, body } = await bodyOf(user, 3)
    const pending = await send(user, body)
    expect(codeOf(pending)).to.deep.equal([408, 'RELAY_PENDING'])
    expect(pending.body.details).to.include({ outcome: 'unknown', operation_id: id })
    await test.forward.execute(id)
    expect((await send(user, body)).body).to.include({ success: true, minimum_margin_nonce: '3' })
  })

  it('when another request was executed, it answers RELAY_FAILED with the failure', async () => {
    const user = await newUser()
    const { id, body } = await bodyOf(user, 3)
    const answer = send(user, body)
    await accepted(id)
    await test.forward.execute(id, {
      failure: 'SUPERSEDED',
      reason: 'another request with the same nonce was executed',
    })
    expect(codeOf(await answer)).to.deep.equal([409, 'RELAY_FAILED'])
    expect((await answer).body.details).to.include({ failure: 'SUPERSEDED', operation_id: id })
  })

  it('when the account has never invalidated any, the minimum is 0; that of another account is not shown', async () => {
    const [user, other] = [await newUser(), await newUser()]
    expect((await minimumOf(user)).body).to.include({ minimum_margin_nonce: '0', next_forward_nonce: 0 })
    expect(codeOf(await minimumOf(user, other.address))).to.deep.equal([403, 'NOT_YOURS'])
  })

  it('when the request is malformed, it is refused with its field', async () => {
    const user = await newUser()
    const { body } = await bodyOf(user, 3)
    const fieldOf = async (changes: Record<string, unknown>) => {
      const { status, body: answer } = await send(user, { ...body, ...changes })
      return [status, answer.details.code, answer.details.field]
    }
    expect(await fieldOf({ new_minimum: '4' })).to.deep.equal([400, 'FORWARD_REQUEST_MISMATCH', 'data'])
    expect(await fieldOf({ new_minimum: '-1' })).to.deep.equal([400, 'INVALID_FIELD', 'new_minimum'])
    expect(await fieldOf({ new_minimum: '9007199254740992' })).to.deep.equal([
      400,
      'INVALID_FIELD',
      'new_minimum',
    ])
    expect(await fieldOf({ market_id: 99 })).to.deep.equal([404, 'MARKET_NOT_FOUND', 'market_id'])
    expect(await fieldOf({ gas: 0 })).to.deep.equal([400, 'INVALID_FIELD', 'gas'])
    expect(await fieldOf({ approved: true })).to.deep.equal([400, 'UNKNOWN_FIELD', 'approved'])
  })
})
