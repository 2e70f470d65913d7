import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { TSchema } from 'typebox'
import { BatchProof } from '../../../api/auctions/proof-schema.ts'
import { PROOF, type Shape } from '../../../client/proof/shape.ts'

type Json = Readonly<Record<string, unknown>>

const HASH = '^0x[0-9a-f]{64}$'

/** The client's form of a schema of the exchange. */
function shapeOf(schema: Json): Shape {
  const {
    anyOf,
    type,
    properties,
    items,
    pattern,
    enum: words,
    required = [],
  } = schema as {
    anyOf?: readonly Json[]
    type?: string | readonly string[]
    properties?: Readonly<Record<string, Json>>
    items?: Json
    pattern?: string
    enum?: readonly unknown[]
    required?: readonly string[]
  }
  if (anyOf !== undefined) {
    const [inner] = anyOf.filter((each) => each.type !== 'null')
    return `${shapeOf(inner as Json)}?`
  }
  if (words !== undefined)
    return `${words.filter((word) => word !== null).join('|')}${words.includes(null) ? '?' : ''}`
  if (Array.isArray(type)) return `${shapeOf({ ...schema, type: type.find((each) => each !== 'null') })}?`
  if (properties !== undefined)
    return Object.fromEntries(
      Object.entries(properties).map(([name, inner]) => [
        name,
        required.includes(name) ? shapeOf(inner) : `${shapeOf(inner)}*`,
      ]),
    )
  if (items !== undefined) return [shapeOf(items)]
  if (type === 'string') return pattern === undefined ? 'text' : pattern === HASH ? 'hash' : 'amount'
  return type === 'boolean' ? 'flag' : String(type)
}

describe('client/proof/shape', () => {
  it('has the form of the schema that the exchange answers with', () => {
    const schema = JSON.parse(JSON.stringify(BatchProof as TSchema)) as Json
    expect(PROOF).to.deep.equal(shapeOf(schema))
  })
})
