import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

describe('filters of adjustment attempts', () => {
  let exchange: ExchangeFixture
  let user: User
  before(async () => {
    exchange = await startExchange()
    user = await createUser(exchange.db, 'filtering')
    await exchange.project()
  })
  after(() => exchange.stop())
  const ask = (query: string) => exchange.get(user, `/v0/account/adjustment-attempts?${query}`)

  it('when a filter cannot match, the list is empty', async () => {
    const queries = ['market_id=2147483648', `market_id=${Number.MAX_SAFE_INTEGER}`, 'adjustment_id=_']
    for (const query of queries) expect((await ask(query)).body, query).to.deep.equal({ attempts: [] })
  })

  it('when Postgres could not compare a filter, it is refused with its field', async () => {
    for (const [field, value] of [
      ['adjustment_id', '%00'],
      ['adjustment_id', 'a%00b'],
      ['adjustment_id', '%ED%A0%80'],
      ['adjustment_id', 'a'.repeat(101)],
      ['market_id', '9007199254740992'],
      ['market_id', '9'.repeat(40)],
      ['market_id', '1%00'],
    ] as const) {
      const { status, body } = await ask(`${field}=${value}`)
      const answer = [status, body.details.code, body.details.field]
      expect(answer, value).to.deep.equal([400, 'INVALID_FIELD', field])
    }
  })
})
