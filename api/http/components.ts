/**
 * Completes the generated OpenAPI document: schemas with a `title` become named components, which the operations refer to, and fields with
 * `x-enum` list their words.
 */

import { CATALOGUE } from '../error-catalogue.ts'
import { extensible } from '../wire/schema.ts'

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
type Node = { readonly [name: string]: Json }

/** Keywords with plain values, below which there are no schemas. */
const VALUES = new Set(['example', 'examples', 'default', 'enum', 'const'])
const OWN_KEYWORDS = new Set(['x-expected', 'x-hints'])

/** Components whose schema is more than what the serializer needs. */
const DEFINITIONS: Readonly<Record<string, Node>> = {
  ErrorCode: {
    type: 'string',
    ...extensible,
    'x-enum-descriptions': Object.fromEntries(
      Object.entries(CATALOGUE).map(([code, { message }]) => [code, message]),
    ),
    enum: Object.keys(CATALOGUE),
  },
}

export interface Components {
  readonly paths: Node
  readonly schemas: Node
}

/** The paths with references in the place of titled schemas, and the schemas that they refer to. */
export function withComponents(paths: Node): Components {
  const schemas = new Map<string, { readonly schema: Node; readonly text: string }>()

  const component = (name: string, { description, ...written }: Node): Json => {
    const schema = DEFINITIONS[name] ?? written
    const text = JSON.stringify(schema)
    const known = schemas.get(name)
    if (known !== undefined && known.text !== text)
      throw new Error(
        `two schemas have the title ${name}: ${known.text} and ${text}; expected one schema per title`,
      )
    if (known === undefined) schemas.set(name, { schema, text })
    const reference = { $ref: `#/components/schemas/${name}` }
    return description === undefined ? reference : { ...reference, description }
  }

  const completed = (node: Node, isOfNames: boolean): Json => {
    const entries = Object.entries(node).flatMap(([key, value]): [string, Json][] => {
      if (isOfNames) return [[key, walk(value, false)]]
      if (key === 'x-enum') return [['enum', value]]
      if (OWN_KEYWORDS.has(key)) return []
      return [[key, VALUES.has(key) ? value : walk(value, key === 'properties')]]
    })
    // Examples of a request's body are shown with the operation.
    const { title, examples: _, ...schema } = Object.fromEntries(entries) as Node
    if (isOfNames || typeof title !== 'string') return Object.fromEntries(entries)
    if (!Array.isArray(schema.type)) return component(title, schema)
    const { description, ...described } = schema
    const reference = component(title, { ...described, type: 'object' })
    return { anyOf: [reference, { type: 'null' }], ...(description === undefined ? {} : { description }) }
  }

  function walk(value: Json, isOfNames: boolean): Json {
    if (Array.isArray(value)) return value.map((each) => walk(each, false))
    return typeof value === 'object' && value !== null ? completed(value as Node, isOfNames) : value
  }

  const referring = walk(paths, true) as Node
  const sorted = [...schemas].sort(([one], [other]) => (one < other ? -1 : 1))
  return { paths: referring, schemas: Object.fromEntries(sorted.map(([name, { schema }]) => [name, schema])) }
}
