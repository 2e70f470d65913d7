/** `details.outcome`: present on errors of commands, absent on errors of reads. */
import { expect } from 'chai'
import { descriptionOf } from '../support/description.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

type Schema = {
  readonly properties: { readonly details: { readonly properties: object; readonly required: string[] } }
}
/** The schema of all errors, then the codes of this operation. */
type ErrorAnswer = {
  content: { 'application/json': { schema: { readonly allOf: readonly [Schema, object] } } }
}
type Operation = { readonly responses: Readonly<Record<string, ErrorAnswer>> }

/** Every operation that can take effect. */
const COMMANDS = [
  'DELETE /v0/me/api-keys/{name}',
  'POST /v0/account/adjust-leverage',
  'POST /v0/account/adjust-margin',
  'POST /v0/account/invalidate-margin-nonces',
  'POST /v0/auth/challenge',
  'POST /v0/faucet',
  'POST /v0/me/api-key/rotate',
  'POST /v0/me/api-keys',
  'POST /v0/orders',
  'POST /v0/orders/cancel/all',
  'POST /v0/orders/cancel/all-after',
  'POST /v0/orders/cancel/batch',
  'POST /v0/orders/cancel/by-client-id/{client_order_id}',
  'POST /v0/orders/cancel/by-hash/{order_hash}',
  'POST /v0/orders/place/batch',
  'POST /v0/orders/replace',
  'POST /v0/orders/replace/batch',
  'POST /v0/positions/close',
  'POST /v0/session-keys/relay',
]
const HASH = `0x${'ab'.repeat(32)}`

describe('the outcome in an error', () => {
  let exchange: ExchangeFixture
  let alice: User
  let operations: { readonly id: string; readonly operation: Operation }[]

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    const { paths } = await descriptionOf(exchange)
    operations = Object.entries(paths as Record<string, Record<string, Operation>>).flatMap(
      ([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({
          id: `${method.toUpperCase()} ${path}`,
          operation,
        })),
    )
  })
  after(() => exchange.stop())

  it('when an operation is described, its errors require an outcome if and only if it is a command', () => {
    expect(operations.length).to.be.above(COMMANDS.length)
    for (const { id, operation } of operations) {
      const statuses = Object.keys(operation.responses).filter((status) => status >= '400')
      expect(statuses, id).to.include.members(['400', '500'])
      for (const status of statuses) {
        const [error] = operation.responses[status]?.content['application/json'].schema.allOf ?? []
        const details = error?.properties.details
        const isCommand = COMMANDS.includes(id)
        expect('outcome' in (details?.properties ?? {}), `${id} ${status}`).to.equal(isCommand)
        expect(details?.required.includes('outcome'), `${id} ${status}`).to.equal(isCommand)
      }
    }
    expect(operations.map(({ id }) => id)).to.include.members(COMMANDS)
  })

  it('when a request is rejected, the error has an outcome if and only if it is a command', async () => {
    for (const { id } of operations) {
      const [method = '', template = ''] = id.split(' ')
      const path = template
        .replace('{order_hash}', HASH)
        .replace('{address}', 'nobody')
        .replace(/\{\w+\}/g, '0')
      const answer = await exchange.send(alice, method as 'GET' | 'POST', `${path}?unknown_field=1`)
      expect(answer.status, id).to.equal(400)
      if (COMMANDS.includes(id)) expect(answer.body.details.outcome, id).to.equal('not_read')
      else expect(answer.body.details, id).to.not.have.property('outcome')
    }
  })

  it('when a read finds nothing, its 404 has no outcome', async () => {
    for (const path of ['/v0/orders/1-999', `/v0/orders/by-hash/${HASH}`, '/v0/markets/99', '/v0/nothing']) {
      const { status, body } = await exchange.get(alice, path)
      expect(status, path).to.equal(404)
      expect(body.details, path).to.not.have.property('outcome')
    }
  })

  it('when a command finds nothing, its 404 has the outcome not_placed', async () => {
    for (const path of [`/v0/orders/cancel/by-hash/${HASH}`, '/v0/nothing']) {
      const { status, body } = await exchange.send(alice, 'POST', path, {})
      expect(status, path).to.equal(404)
      expect(body.details.outcome, path).to.equal('not_placed')
    }
  })

  it('when no credential is sent, the 401 has an outcome if and only if the request is a command', async () => {
    const read = await exchange.get(null, '/v0/orders/1-1')
    const command = await exchange.send(null, 'POST', '/v0/orders', {})
    expect([read.status, command.status]).to.deep.equal([401, 401])
    expect(read.body.details).to.not.have.property('outcome')
    expect(command.body.details.outcome).to.equal('not_read')
  })
})
