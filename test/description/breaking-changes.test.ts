/** Which changes of a description break clients: one case per kind of change, and its counterpart that breaks none. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { breakingChanges, breakingMessageChanges } from './breaking-changes.ts'
import { changeList } from './change-list.ts'
import { textOf } from './documents.ts'
import type { Json, Node } from './schema-changes.ts'

const content = (schema: Json) => ({ content: { 'application/json': { schema } } })
const object = (properties: Node, more: Node = {}) => ({ type: 'object', properties, ...more })

const ORDER = object({
  size: { type: 'number', minimum: 1, maximum: 9 },
  side: { type: 'string', enum: ['LONG', 'SHORT'] },
  note: { type: ['string', 'null'] },
})
const ANSWER = object(
  {
    id: { type: 'integer' },
    status: { enum: ['OPEN', 'FILLED'] },
    parts: { type: 'array', items: { type: 'string' } },
  },
  { required: ['id', 'status'] },
)

interface Parts {
  readonly body?: Json
  readonly answer?: Json
  readonly parameters?: Json
  readonly operation?: Node
  readonly components?: Node
}

/** A document with one operation. */
const documentOf = ({
  body = ORDER,
  answer = ANSWER,
  parameters = [],
  operation = {},
  components = {},
}: Parts): Node => ({
  components,
  paths: {
    '/orders': {
      post: {
        ...{ security: [], parameters, requestBody: { ...content(body) } },
        responses: {
          200: { headers: { ETag: {} }, ...content(answer) },
          404: content({ type: 'object', properties: { code: { enum: ['A', 'B'], 'x-extensible': true } } }),
        },
        ...operation,
      },
    },
  },
})

const withField = (schema: Node, name: string, field: Json | undefined, more: Node = {}): Json => {
  const { [name]: _, ...others } = schema.properties as Node
  return { ...schema, ...more, properties: field === undefined ? others : { ...others, [name]: field } }
}
const body = (name: string, field: Json | undefined, more: Node = {}) => ({
  body: withField(ORDER, name, field, more),
})
const answer = (name: string, field: Json | undefined, more: Node = {}) => ({
  answer: withField(ANSWER, name, field, more),
})
const parameter = (more: Node) => ({
  parameters: [{ in: 'query', name: 'limit', schema: { type: 'integer' }, ...more }],
})

const BREAKING: readonly (readonly [change: string, before: Parts, after: Parts, found: string])[] = [
  ['an answer loses a field', {}, answer('parts', undefined), 'POST /orders 200.parts: the field is removed'],
  [
    'a field of an answer becomes optional',
    {},
    { answer: { ...ANSWER, required: ['id'] } },
    'POST /orders 200.status: can now be absent',
  ],
  [
    'a field of an answer can be null',
    {},
    answer('id', { type: ['integer', 'null'] }),
    'POST /orders 200.id: can now be of the type null',
  ],
  [
    'an integer of an answer becomes a number',
    {},
    answer('id', { type: 'number' }),
    'POST /orders 200.id: can now be of the type number',
  ],
  [
    'an answer gets a word that clients do not expect',
    {},
    answer('status', { enum: ['OPEN', 'FILLED', 'LOST'] }),
    'POST /orders 200.status: can now be "LOST"',
  ],
  [
    'items of an answer change their type',
    {},
    answer('parts', { type: 'array', items: { type: 'number' } }),
    'POST /orders 200.parts[]: can now be of the type number',
  ],
  [
    'a request gets a required field',
    {},
    body('price', { type: 'number' }, { required: ['price'] }),
    'POST /orders body.price: is now required',
  ],
  [
    'a closed request loses a field',
    {},
    body('note', undefined, { additionalProperties: false }),
    'POST /orders body.note: the field is no longer accepted',
  ],
  [
    'a request loses a word',
    {},
    body('side', { type: 'string', enum: ['LONG'] }),
    'POST /orders body.side: no longer accepts "SHORT"',
  ],
  [
    'free text becomes a list of words',
    {},
    body('note', { type: ['string', 'null'], enum: ['x', null] }),
    'POST /orders body.note: accepts only listed values now',
  ],
  [
    'a request no longer accepts null',
    {},
    body('note', { type: 'string' }),
    'POST /orders body.note: no longer accepts the type null',
  ],
  [
    'a bound of a request is tighter',
    {},
    body('size', { type: 'number', minimum: 1, maximum: 8 }),
    'POST /orders body.size: maximum is 8 now',
  ],
  [
    'a request gets a pattern',
    {},
    body('note', { type: ['string', 'null'], pattern: '^a' }),
    'POST /orders body.note: the pattern is ^a now',
  ],
  [
    'a parameter becomes required',
    parameter({}),
    parameter({ required: true }),
    'POST /orders query limit: is now required',
  ],
  ['a parameter is removed', parameter({}), {}, 'POST /orders query limit: is no longer accepted'],
  [
    'a status is removed',
    {},
    { operation: { responses: { 200: { headers: { ETag: {} }, ...content(ANSWER) } } } },
    'POST /orders 404: the status is removed',
  ],
  [
    'a public operation requires a credential',
    {},
    { operation: { security: [{ apiKey: [] }] } },
    'POST /orders: now requires a credential',
  ],
  [
    'an answer gets another alternative',
    { answer: { anyOf: [ANSWER] } },
    { answer: { anyOf: [ANSWER, { type: 'null' }] } },
    'POST /orders 200: has 2 alternatives instead of 1',
  ],
]

const HARMLESS: readonly (readonly [change: string, before: Parts, after: Parts])[] = [
  ['an answer gets a field', {}, answer('extra', { type: 'string' })],
  ['a field of an answer is no longer null', answer('id', { type: ['integer', 'null'] }), {}],
  ['an answer loses a word', answer('status', { enum: ['OPEN', 'FILLED', 'LOST'] }), {}],
  [
    'an answer gets a word that clients expect',
    answer('status', { enum: ['OPEN'], 'x-extensible': true }),
    {},
  ],
  ['a request gets an optional field', {}, body('price', { type: 'number' })],
  ['a request gets a word', {}, body('side', { type: 'string', enum: ['LONG', 'SHORT', 'BOTH'] })],
  ['a request accepts another type', {}, body('size', { type: ['number', 'string'], minimum: 1 })],
  ['a parameter is added', {}, parameter({})],
  ['a parameter becomes optional', parameter({ required: true }), parameter({})],
  [
    'a schema becomes a component',
    {},
    { answer: { $ref: '#/components/schemas/Answer' }, components: { schemas: { Answer: ANSWER } } },
  ],
  [
    'an operation becomes public',
    { operation: { security: [{ apiKey: [] }] } },
    { operation: { security: [{}, { apiKey: [] }] } },
  ],
]

describe('breaking changes of a description', () => {
  for (const [change, before, after, found] of BREAKING)
    it(`when ${change}, it breaks clients`, () =>
      expect(breakingChanges(documentOf(before), documentOf(after))).to.deep.equal([found]))

  for (const [change, before, after] of HARMLESS)
    it(`when ${change}, it breaks no client`, () =>
      expect(breakingChanges(documentOf(before), documentOf(after))).to.deep.equal([]))

  it('when an operation is removed, it breaks clients, and when one is added, it does not', () => {
    const document = documentOf({})
    expect(breakingChanges(document, { paths: {} })).to.deep.equal(['POST /orders: the operation is removed'])
    expect(breakingChanges({ paths: {} }, document)).to.deep.equal([])
  })

  it('when an answer loses a header, it breaks clients', () => {
    const responses = { 200: content(ANSWER), 404: content({}) }
    expect(breakingChanges(documentOf({}), documentOf({ operation: { responses } }))).to.include(
      'POST /orders 200: the header ETag is removed',
    )
  })

  it('when a schema contains itself, the comparison ends and finds a change in it', () => {
    const treeOf = (leaf: string) => ({
      answer: { $ref: '#/components/schemas/Tree' },
      components: {
        schemas: { Tree: object({ leaf: { type: leaf }, child: { $ref: '#/components/schemas/Tree' } }) },
      },
    })
    expect(breakingChanges(documentOf(treeOf('string')), documentOf(treeOf('number')))).to.deep.equal([
      'POST /orders 200.leaf: can now be of the type number',
    ])
  })

  it('when a message of the feed changes, its direction decides whether clients break', () => {
    const feedOf = (words: Json): Node => ({
      operations: { place: { action: 'receive', messages: [{ $ref: '#/channels/live/messages/place' }] } },
      components: {
        messages: { place: { payload: { enum: words } }, fill: { payload: { enum: words } } },
      },
    })
    expect(breakingMessageChanges(feedOf(['A']), feedOf(['A', 'B']))).to.deep.equal(['fill: can now be "B"'])
    expect(breakingMessageChanges(feedOf(['A', 'B']), feedOf(['A']))).to.deep.equal([
      'place: no longer accepts "B"',
    ])
    expect(breakingMessageChanges(feedOf(['A']), {})).to.deep.equal([
      'place: the message is removed',
      'fill: the message is removed',
    ])
  })

  it('when the committed descriptions are compared with themselves, nothing breaks, and their text is their value', () => {
    for (const [file, changes] of [
      ['docs/openapi.json', breakingChanges],
      ['docs/asyncapi.json', breakingMessageChanges],
    ] as const) {
      const text = readFileSync(file, 'utf8')
      const document = JSON.parse(text) as Node
      expect(changes(document, document)).to.deep.equal([])
      expect(`${textOf(document)}\n`).to.equal(text)
    }
  })

  it('when changes of a field concern several operations and statuses, the list has the field once', () => {
    const change = 'details.outcome: can now be "not_read"'
    expect(
      changeList([
        `POST /v0/orders 400 (allOf 1).${change}`,
        `POST /v0/orders 409 (allOf 1).${change}`,
        `POST /v0/orders/cancel/by-hash/{order_hash} 400 (allOf 1).${change}`,
        'GET /v0/orders/{order_id} 200.status: can now be "A"',
        'GET /v0/orders/{order_id} 200.status: can now be "B"',
        'GET /v0/orders query limit: is now required',
        'DELETE /v0/orders: the operation is removed',
        'tradesUpdate.data.fills: the field is removed',
      ]),
    ).to.equal(
      `- \`outcome: can now be "not_read"\`
  - \`POST /v0/orders 400,409\`
  - \`POST /v0/orders/cancel/by-hash/{order_hash} 400\`
- \`status: can now be "A", can now be "B"\`
  - \`GET /v0/orders/{order_id} 200\`
- \`query limit: is now required\`
  - \`GET /v0/orders\`
- \`the operation is removed\`
  - \`DELETE /v0/orders\`
- \`tradesUpdate.data.fills: the field is removed\``,
    )
  })
})
