/** Examples of requests and answers, made from their schemas. */
import { EXAMPLE_VALUES } from './example-values.ts'

interface Schema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly 'x-enum'?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly minItems?: number
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

const TIME = '2026-09-21T14:13:20.000Z'
const HASH = String(EXAMPLE_VALUES.order_hash)
const ADDRESS = String(EXAMPLE_VALUES.address)
const RAW = '_e18_raw'

/** A decimal of up to 18 places times 1e18. */
function rawOf(value: number): string {
  const [whole = '0', fraction = ''] = String(value).split('.')
  return BigInt(`${whole}${fraction.padEnd(18, '0')}`).toString()
}

/** A text of the form that its name or pattern says it has. */
function textOf({ pattern }: Schema, name: string): string {
  if (pattern !== undefined) {
    const fitting = [HASH, ADDRESS, '1', '0x'].find((text) => new RegExp(pattern).test(text))
    if (fitting !== undefined) return fitting
  }
  if (/hash$/.test(name)) return HASH
  if (/address/i.test(name)) return ADDRESS
  return name.endsWith(RAW) ? '0' : 'text'
}

const typesOf = ({ type }: Schema): readonly (string | undefined)[] => [type].flat()

function scalarOf(schema: Schema, name: string): unknown {
  const types = typesOf(schema)
  if (types.includes('null')) return null
  if (schema.format === 'date-time') return TIME
  if (types.includes('boolean')) return true
  if (types.includes('integer') || types.includes('number')) return Math.max(1, schema.minimum ?? 1)
  return textOf(schema, name)
}

/** Whether the value for the name is one of this field. */
function isOf(schema: Schema, value: unknown): boolean {
  const types = typesOf(schema)
  const words = schema.enum ?? schema['x-enum']
  if (words !== undefined) return words.includes(value)
  if (value === null) return types.includes('null')
  if (Array.isArray(value)) return types.includes('array') && typesOf(schema.items ?? {}).includes('string')
  if (typeof value === 'number')
    return types.includes('number') || (types.includes('integer') && Number.isInteger(value))
  const isText = types.includes('string') && (schema.format === undefined || value === TIME)
  return typeof value === 'boolean'
    ? types.includes('boolean')
    : isText && (schema.pattern === undefined || new RegExp(schema.pattern).test(String(value)))
}

function objectOf({ properties = {}, required = [] }: Schema, isRequest: boolean): Record<string, unknown> {
  const names = Object.keys(properties).filter((name) => !isRequest || required.includes(name))
  const values = new Map(
    names.map((name): [string, unknown] => [name, exampleOf(properties[name] as Schema, isRequest, name)]),
  )
  for (const name of names) {
    const amount = name.endsWith(RAW) ? values.get(name.slice(0, -RAW.length)) : undefined
    if (typeof amount === 'number') values.set(name, rawOf(amount))
    if (amount === null) values.set(name, null)
  }
  return Object.fromEntries(values)
}

/** An example of the schema. Requests have only their required fields; the schema's own `examples` outweigh all other values. */
export function exampleOf(schema: object, isRequest: boolean, name = ''): unknown {
  const described = schema as Schema
  const own = described.examples?.[0] ?? described.const
  if (own !== undefined) return own
  const known = EXAMPLE_VALUES[name]
  if (known !== undefined && isOf(described, known)) return known
  const word = (described.enum ?? described['x-enum'])?.[0]
  if (word !== undefined) return word
  const alternative = (described.anyOf ?? described.oneOf)?.[0]
  if (alternative !== undefined) return exampleOf(alternative, isRequest, name)
  if (described.properties !== undefined) return objectOf(described, isRequest)
  if (typesOf(described).includes('object')) return {}
  if (described.items !== undefined) return [exampleOf(described.items, isRequest, name)]
  return scalarOf(described, name)
}
