/** The committed descriptions of the api, and those that the sources generate. */
import { existsSync, readFileSync } from 'node:fs'
import type { ExchangeFixture } from '../api/support/exchange-fixture.ts'
import { breakingChanges, breakingMessageChanges } from './breaking-changes.ts'
import type { Json, Node } from './schema-changes.ts'

/** Lines of the committed text are at most this long, if a value fits. */
const LINE = 120

/** JSON with each value on one line if it fits: short enough to read, and a change of one field is a change of one line. */
export function textOf(value: Json, indent = ''): string {
  const flat = JSON.stringify(value)
  if (typeof value !== 'object' || value === null || indent.length + flat.length <= LINE) return flat
  const inner = `${indent}  `
  const entries = Array.isArray(value)
    ? value.map((each) => `${inner}${textOf(each, inner)}`)
    : Object.entries(value).map(([name, each]) => `${inner}${JSON.stringify(name)}: ${textOf(each, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${entries.join(',\n')}\n${indent}${close}`
}

const COMMITTED = [
  { file: 'docs/openapi.json', path: '/v0/openapi.json', changes: breakingChanges },
  { file: 'docs/asyncapi.json', path: '/v0/asyncapi.json', changes: breakingMessageChanges },
] as const

export interface Comparison {
  readonly file: string
  readonly text: string
  readonly isCurrent: boolean
  /** What breaks clients of the committed description. */
  readonly breaking: readonly string[]
}

/** Compares what the api serves with what is committed. */
export const compareWithCommitted = (exchange: ExchangeFixture): Promise<Comparison[]> =>
  Promise.all(
    COMMITTED.map(async ({ file, path, changes }) => {
      const { body } = await exchange.get(null, path)
      const text = `${textOf(body)}\n`
      const committed = existsSync(file) ? readFileSync(file, 'utf8') : null
      const before = committed === null ? {} : (JSON.parse(committed) as Node)
      return { file, text, isCurrent: committed === text, breaking: changes(before, body) }
    }),
  )
