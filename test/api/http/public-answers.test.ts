/** What is public names no account and no order: by the schemas of all answers that need no credential. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { descriptionOf } from '../support/description.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

/** Fields that name an account, or link what belongs to one order or one account. */
const NAMES = /^(user_id|owner|account|address|maker|signer|order_id|order_hash|salt|role|counterparty|legs)$/

/** Looks up the user of an address that the caller names. */
const LOOK_UPS = ['/v0/users/by-eoa/{address}']

/** Orders that have filled: the calldata of the transaction that the proof names contains them. */
const OPENED = ['/v0/auctions/{market_id}/{batch_id}/proof'].flatMap((path) => [
  `${path} order_hash`,
  `${path} salt`,
])

/** Without the fee rates `maker` and `taker`. */
const fieldsOf = ({ properties = {}, items }: Schema): string[] => [
  ...Object.entries(properties)
    .filter(([name]) => name !== 'fees')
    .flatMap(([name, schema]) => [name, ...fieldsOf(schema)]),
  ...(items === undefined ? [] : fieldsOf(items)),
]

describe('public answers', () => {
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
  })
  after(() => exchange.stop())

  it('when an operation needs no credential, no field of its answer names an account or an order', async () => {
    const { paths } = await descriptionOf(exchange)
    const found: string[] = []
    let operations = 0
    for (const [path, methods] of Object.entries(paths)) {
      for (const { security, responses } of Object.values(methods)) {
        if (security.length > 0 || LOOK_UPS.includes(path)) continue
        operations++
        const answers = responses as Record<string, { content?: Record<string, { schema: Schema }> }>
        const schema = answers['200']?.content?.['application/json']?.schema ?? {}
        found.push(
          ...fieldsOf(schema)
            .filter((name) => NAMES.test(name))
            .map((name) => `${path} ${name}`),
        )
      }
    }
    expect(operations).to.be.at.least(12)
    expect(found).to.deep.equal(OPENED)
  })
})
