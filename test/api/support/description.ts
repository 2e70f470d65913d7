/** The OpenAPI description that the api serves, with each reference to a component replaced by its schema. */
import type { ExchangeFixture } from './exchange-fixture.ts'

export interface Description {
  readonly openapi: string
  readonly info: { readonly version: string }
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any part of a JSON document
  readonly paths: Record<string, Record<string, any>>
}

const PREFIX = '#/components/'

export function resolved(document: unknown): Description {
  type Kind = 'schemas' | 'responses' | 'headers'
  const { components } = document as { readonly components: Record<Kind, Record<string, object>> }
  const target = (name: string): object | undefined => {
    const [kind = '', ...rest] = name.slice(PREFIX.length).split('/')
    return components[kind as Kind][rest.join('/')]
  }
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve)
    if (typeof value !== 'object' || value === null) return value
    const { $ref, ...others } = value as { readonly $ref?: unknown }
    if (typeof $ref === 'string' && $ref.startsWith(PREFIX))
      return { ...(resolve(target($ref)) as object), ...others }
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolve(each)]))
  }
  return resolve(document) as Description
}

export const descriptionOf = async (exchange: ExchangeFixture): Promise<Description> =>
  resolved((await exchange.get(null, '/v0/openapi.json')).body)
