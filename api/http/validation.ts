/** Compiles the validators of request parts from their schemas. */
import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import { Compile } from 'typebox/compile'
import type { Problem } from './problems.ts'

const WHOLE = /^-?\d{1,20}$/

/** Names of the integer fields. In a URL their values are texts, of which only plain digits are accepted. */
function integersOf(schema: unknown): string[] {
  const { properties = {} } = schema as { readonly properties?: Record<string, { readonly type?: unknown }> }
  return Object.keys(properties).filter((name) => properties[name]?.type === 'integer')
}

/** The schema without the item schemas of lists marked `x-each`, whose items the command validates one by one. */
function withoutItems<Schema>(schema: Schema): Schema {
  const { properties } = schema as { readonly properties?: Record<string, object> }
  if (properties === undefined) return schema
  const relaxed = Object.entries(properties).map(([name, property]) => [
    name,
    'x-each' in property ? { ...property, items: {} } : property,
  ])
  return { ...schema, properties: Object.fromEntries(relaxed) }
}

interface Described {
  readonly properties?: Readonly<Record<string, { readonly maxItems?: number }>>
}

/** Checks only the lengths of lists, so that a list that is too long is rejected without validating its items. */
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

/** The library's compiler, with stricter integers in URLs: the library would read ` 1`, `0x1` and `1.5` as 1. */
export const compileValidator: typeof TypeBoxValidatorCompiler = (route) => {
  if (route.httpPart === 'body') {
    const check = TypeBoxValidatorCompiler({ ...route, schema: withoutItems(route.schema) })
    const find = tooLong(route.schema)
    return (value: unknown) => {
      const problem = find(value)
      return problem === undefined ? check(value) : { error: [problem] as never }
    }
  }
  const validate = TypeBoxValidatorCompiler(route)
  const texts = Compile(route.schema)
  const integers = integersOf(route.schema)
  return (value: unknown) => {
    // The library would convert each field before its check.
    if (texts.Check(value)) return { value }
    const fields = value as Record<string, unknown>
    const wrong = integers.find((name) => typeof fields[name] === 'string' && !WHOLE.test(fields[name]))
    if (wrong === undefined) return validate(value)
    const problem = { keyword: 'type', instancePath: `/${wrong}`, params: { type: 'integer' } }
    return { error: [problem] as never }
  }
}
