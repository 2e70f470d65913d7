/** The examples of the description. */
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { SIGNED_ORDER, SIGNING } from '../../../api/order-entry/signing-example.ts'
import { type Description, resolved } from '../support/description.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

interface Contained {
  readonly schema: object
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

const examplesIn = ({ example, examples = {} }: Contained): unknown[] => [
  ...(example === undefined ? [] : [example]),
  ...Object.values(examples).map(({ value }) => value),
]

describe('the examples of the description', () => {
  let exchange: ExchangeFixture
  let document: Description
  before(async () => {
    exchange = await startExchange()
    document = resolved((await exchange.get(null, '/v0/openapi.json')).body)
  })
  after(() => exchange.stop())

  it('when an operation has a body or a JSON answer, each has an example that its schema accepts', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
    for (const { operationId, requestBody, responses } of operations) {
      const parts = {
        body: requestBody?.content['application/json'],
        answer: responses[200].content?.['application/json'],
      }
      for (const [part, contained] of Object.entries(parts) as [string, Contained | undefined][]) {
        if (contained === undefined) continue
        const examples = examplesIn(contained)
        expect(examples, `${operationId} ${part}`).to.not.be.empty
        const validate = ajv.compile(contained.schema)
        for (const example of examples)
          expect(validate(example) ? [] : validate.errors, `${operationId} ${part}`).to.deep.equal([])
      }
    }
  })

  it('when an amount is shown, its exact form is the same amount', () => {
    const { get } = document.paths['/v0/orders/{order_id}'] ?? {}
    const { example } = get.responses[200].content['application/json']
    expect([example.price, example.price_e18_raw]).to.deep.equal([40.2, '40200000000000000000'])
    expect(example.quantity_e18_raw).to.equal('1002000000000000000')
  })

  it('when the placement is described, its worked example is a signing vector', () => {
    const { private_key, orders } = JSON.parse(readFileSync('docs/signing-vectors.json', 'utf8'))
    const { domain, struct, order_hash } = SIGNING
    const vector = orders.find((each: { order_hash: string }) => each.order_hash === order_hash)
    expect({ domain, struct }).to.deep.equal({ domain: vector.domain, struct: vector.struct })
    expect([SIGNED_ORDER.signature, SIGNING.private_key]).to.deep.equal([vector.signature, private_key])
    const { post } = document.paths['/v0/orders'] ?? {}
    const { description, requestBody } = post
    for (const part of [order_hash, vector.signature, struct.flags, domain.verifyingContract])
      expect(description).to.include(part)
    expect(examplesIn(requestBody.content['application/json'])).to.deep.equal([SIGNED_ORDER])
  })

  it('when the worked example is followed, its struct has the amounts of its body', () => {
    const { struct } = SIGNING
    expect(BigInt(struct.flags) >> 4n).to.equal(BigInt(SIGNED_ORDER.salt))
    const wei = (decimal: string): string =>
      (BigInt(Math.round(Number(decimal) * 1000)) * 10n ** 15n).toString()
    expect([struct.price, struct.quantity, struct.leverage]).to.deep.equal([
      ...[wei(SIGNED_ORDER.price), wei(SIGNED_ORDER.quantity), wei(String(SIGNED_ORDER.leverage))],
    ])
    expect(struct.expiration).to.equal(String(SIGNED_ORDER.expiration_seconds))
  })
})
