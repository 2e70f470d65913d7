/** The OpenAPI description: its rules, its named schemas and the page that shows it. */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import Type from 'typebox'
import { CATALOGUE, type ErrorCode } from '../../../api/error-catalogue.ts'
import { withComponents } from '../../../api/http/components.ts'
import { named, nullableObject } from '../../../api/wire/schema.ts'
import { ORDER_TYPES } from '../../../domain/orders/order.ts'
import { compareWithCommitted } from '../../description/documents.ts'
import { type Description, resolved } from '../support/description.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

/** The codes of a status of an operation. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads any part of a JSON document
const codesOf = (content: any): ErrorCode[] =>
  content?.['application/json'].schema.allOf[1].properties.details.properties.code.enum ?? []

const NAMED = ['Balance', 'CommandError', 'Error', 'Fill', 'Market', 'Order', 'PlaceOrderBody', 'Position']

describe('the OpenAPI description', () => {
  let exchange: ExchangeFixture
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any part of a JSON document
  let document: any
  /** Without references. */
  let described: Description
  before(async () => {
    exchange = await startExchange()
    document = (await exchange.get(null, '/v0/openapi.json')).body
    described = resolved(document)
  })
  after(() => exchange.stop())

  it('when it is linted by the recommended rules, it has no error', async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    const errors = problems.filter(({ severity }) => severity === 'error')
    expect(
      errors.map(({ ruleId, message, location }) => `${ruleId} ${message} ${location[0]?.pointer}`),
    ).to.deep.equal([])
  })

  it('when operations exchange the same objects, they refer to one schema with a name', () => {
    const { schemas } = document.components
    expect(Object.keys(schemas)).to.include.members(NAMED)
    const { responses, requestBody } = document.paths['/v0/orders'].post
    expect(requestBody.content['application/json'].schema).to.deep.equal({
      $ref: '#/components/schemas/PlaceOrderBody',
    })
    expect(responses['400'].content['application/json'].schema.allOf[0].$ref).to.equal(
      '#/components/schemas/CommandError',
    )
    expect(schemas.PlaceOrderAnswer.properties.order.$ref).to.equal('#/components/schemas/Order')
  })

  it('when a field accepts a closed list of words, the description lists them', () => {
    const { PlaceOrderBody, Order, Error: ErrorOfRead, ErrorCode } = document.components.schemas
    expect(PlaceOrderBody.properties.order_type.enum).to.deep.equal(ORDER_TYPES)
    expect(Order.properties.order_type.enum).to.deep.equal(ORDER_TYPES)
    expect(Order.properties.status_reason.enum).to.include(null)
    expect(ErrorOfRead.properties.details.properties.code.$ref).to.equal('#/components/schemas/ErrorCode')
    expect(ErrorCode.enum).to.deep.equal(Object.keys(CATALOGUE))
  })

  it('when an operation is described, its errors are listed by the status that the catalogue gives them', () => {
    const operations = Object.values(described.paths).flatMap((methods) => Object.values(methods))
    for (const { operationId, responses } of operations) {
      const errors = Object.entries(responses as Record<string, never>).filter(([status]) => status >= '400')
      expect(errors.map(([status]) => status)).to.include.members(['400', '429', '500', '503'])
      for (const [status, { content }] of errors as [string, { content: never }][]) {
        const codes: ErrorCode[] = codesOf(content)
        expect(codes, `${operationId} ${status}`).to.not.be.empty
        for (const code of codes) expect(CATALOGUE[code].status, code).to.equal(Number(status))
      }
    }
  })

  it('when the sources have changed, the committed descriptions are those that the api serves', async () => {
    for (const { file, isCurrent, breaking } of await compareWithCommitted(exchange)) {
      expect(breaking, `${file}: clients would break`).to.deep.equal([])
      expect(isCurrent, `${file} is not what the api serves: run \`npm run describe\``).to.equal(true)
    }
  })

  it('when answers are described, they list the headers with which they are sent', async () => {
    const namesAt = (path: string, method: string, status: number): string[] =>
      Object.keys(described.paths[path]?.[method].responses[status].headers)
    const limits = ['X-Request-Id', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']
    expect(namesAt('/v0/orders', 'post', 200)).to.deep.equal(limits)
    for (const status of [408, 429, 503])
      expect(namesAt('/v0/orders', 'post', status)).to.deep.equal([...limits, 'Retry-After'])
    const cached = [...limits, 'ETag', 'Cache-Control']
    for (const status of [200, 304])
      expect(namesAt('/v0/contracts/shared', 'get', status)).to.deep.equal(cached)
    const { headers } = await exchange.get(null, '/v0/contracts/shared')
    expect(Object.keys(headers)).to.include.members(cached.map((name) => name.toLowerCase()))
  })

  it('when a placement is described, it lists codes of its access, body and terms, and a public read does not', () => {
    const codesAt = (path: string, method: string, status: number): ErrorCode[] =>
      codesOf(described.paths[path]?.[method].responses[status]?.content)
    expect(codesAt('/v0/orders', 'post', 400)).to.include.members([
      'INVALID_JSON',
      'TICK_SIZE',
      'MISSING_FIELD',
    ])
    expect(codesAt('/v0/orders', 'post', 401)).to.include('API_KEY_UNKNOWN')
    expect(codesAt('/v0/orders', 'post', 403)).to.deep.equal(['READ_ONLY_KEY', 'ADDRESS_NOT_ALLOWED'])
    expect(codesAt('/v0/orders', 'post', 409)).to.deep.equal([
      'BRACKET_TAKEN',
      'ORDER_FLAGS_DIFFER',
      'CLIENT_ORDER_ID_USED',
      'SALT_USED',
    ])
    expect(codesAt('/v0/markets/{market_id}', 'get', 404)).to.deep.equal(['MARKET_NOT_FOUND'])
    expect(codesAt('/v0/markets/{market_id}', 'get', 401)).to.deep.equal([])
  })

  it('when an operation requires no credential, its security is empty, and otherwise it names both schemes', () => {
    expect(document.paths['/v0/markets'].get.security).to.deep.equal([])
    expect(document.paths['/v0/orders'].post.security).to.deep.equal([{ apiKey: [] }, { bearer: [] }])
    expect(document.servers).to.have.length(1)
  })

  it('when the page of the reference is opened, it offers no tools of its maker', async () => {
    const { body: text } = await exchange.get(null, '/docs/')
    for (const setting of ['"hideClientButton": true', '"showDeveloperTools": "never"', '"telemetry": false'])
      expect(text).to.include(setting)
    expect(text.match(/(?:src|href)="https?:[^"]*"/g)).to.equal(null)
    expect(text).to.include('a[href*="scalar.com"] { display: none !important; }')
    const { status, headers } = await exchange.get(null, '/favicon.ico')
    expect([status, headers['content-type']]).to.deep.equal([200, 'image/svg+xml'])
  })
})

describe('named schemas', () => {
  const point = named('Point', { x: Type.Number() }, { description: 'A point.' })

  it('when a named schema may be null, the description is a choice of its name and null', () => {
    const { paths, schemas } = withComponents({
      '/a': { schema: { ...nullableObject(point, 'Or none.') } },
    } as never)
    expect(paths).to.deep.equal({
      '/a': {
        schema: {
          anyOf: [{ $ref: '#/components/schemas/Point' }, { type: 'null' }],
          description: 'Or none.',
        },
      },
    })
    expect(schemas).to.have.property('Point')
  })

  it('when two different schemas have one name, the description is refused', () => {
    const other = named('Point', { y: Type.Number() })
    expect(() => withComponents({ '/a': { one: point, other } } as never)).to.throw(
      'two schemas have the title Point',
    )
  })
})
