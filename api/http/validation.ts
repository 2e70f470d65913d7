/** Validates requests by their schemas. */
import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import type { Problem } from './problems.ts'

type Compile = typeof TypeBoxValidatorCompiler

const WHOLE = /^-?\d{1,20}$/

/** The fields that are whole numbers: what a URL says for them is text, and only digits are read as a number. */
function integersOf(schema: unknown): string[] {
  const { properties = {} } = schema as { readonly properties?: Record<string, { readonly type?: unknown }> }
  return Object.keys(properties).filter((name) => properties[name]?.type === 'integer')
}

/** The schema without what it says of the items of lists marked `x-each`: whoever takes those looks at them one by one. */
function withoutItems<Schema>(schema: Schema): Schema {
  const { properties } = schema as { readonly properties?: Record<string, object> }
  if (properties === undefined) return schema
  const loose = Object.entries(properties).map(([name, property]) => [
    name,
    'x-each' in property ? { ...property, items: {} } : property,
  ])
  return { ...schema, properties: Object.fromEntries(loose) }
}

interface Described {
  readonly properties?: Readonly<Record<string, { readonly maxItems?: number }>>
}

/** Looks at the length of lists alone: what is far too long is not looked through, item by item. */
function tooLong(schema: unknown): (value: unknown) => Problem | undefined {
  const { properties = {} } = schema as Described
  const lists = Object.entries(properties).flatMap(([name, { maxItems }]) =>
    maxItems === undefined ? [] : [{ name, limit: maxItems }],
  )
  return (value) => {
    const list = lists.find(({ name, limit }) => {
      const items = (value as Record<string, unknown> | null)?.[name]
      return Array.isArray(items) && items.length > limit
    })
    return list && { keyword: 'maxItems', instancePath: `/${list.name}`, params: { limit: list.limit } }
  }
}

/** As the library's, which would read ` 1`, `0x1` and `1.5` in a URL as 1. */
export const compileValidator: Compile = (route) => {
  if (route.httpPart === 'body') {
    const check = TypeBoxValidatorCompiler({ ...route, schema: withoutItems(route.schema) })
    const find = tooLong(route.schema)
    return (value: unknown) => {
      const problem = find(value)
      return problem === undefined ? check(value) : { error: [problem] as never }
    }
  }
  const validate = TypeBoxValidatorCompiler(route)
  const integers = integersOf(route.schema)
  return (value: unknown) => {
    const fields = value as Record<string, unknown>
    const wrong = integers.find((name) => typeof fields[name] === 'string' && !WHOLE.test(fields[name]))
    if (wrong === undefined) return validate(value)
    const problem = { keyword: 'type', instancePath: `/${wrong}`, params: { type: 'integer' } }
    return { error: [problem] as never }
  }
}
