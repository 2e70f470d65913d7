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

  it('when attempts are listed with from and to, from is inclusive and to exclusive', async () => {
    const attempt = {
      market_id: 1,
      user_id: user.userId,
      kind: 'margin',
      status: 'COMMITTED',
      amount: 1n,
    } as const
    const times = [1_000, 2_000, 3_000]
    await exchange.db
      .insertInto('read.adjustment_attempts')
      .values(
        times.map(
          (at) => ({ ...attempt, adjustment_id: `1-${at}`, created_at: at, updated_at: at }) as never,
        ),
      )
      .execute()
    const timesOf = async (query: string): Promise<number[]> =>
      (await ask(query)).body.attempts.map(({ created_at }: { created_at: string }) => Date.parse(created_at))
    const time = (at: number) => new Date(at).toISOString()
    expect(await timesOf(`from=${time(2_000)}`)).to.deep.equal([3_000, 2_000])
    expect(await timesOf(`to=${time(3_000)}`)).to.deep.equal([2_000, 1_000])
    expect(await timesOf(`from=${time(2_000)}&to=${time(3_000)}&market_id=1`)).to.deep.equal([2_000])
    expect((await ask('from=now')).body.details).to.include({ code: 'INVALID_FIELD', field: 'from' })
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
