/** Laws that every scenario checks on the groups of its journal. */
import { isDeepStrictEqual } from 'node:util'
import type { Group } from '../../keeper/engine/ports.ts'
import type { WrittenTables } from './database.ts'

/** Violations a run reports in full. */
export const MOST_REPORTED = 10

/** Groups are numbered without gaps, and tokens never decrease. */
export function oneOwner(groups: readonly Group<unknown>[]): string[] {
  return groups.flatMap(({ number, token }, at) => {
    const before = groups[at - 1]
    const isNext = number === at + 1 && (before === undefined || before.token <= token)
    return isNext ? [] : [`one-owner: group ${number} of token ${token} at place ${at + 1}`]
  })
}

/** At the end of a run the tables of readers contain every row of the journal once, in its order. */
export function tablesFollow<Row>(groups: readonly Group<Row>[], tables: WrittenTables<Row>): string[] {
  const expected = groups.flatMap(({ rows }) => rows)
  if (tables.written !== groups.length)
    return [`tables: written up to ${tables.written} of ${groups.length} groups`]
  return isDeepStrictEqual(tables.rows, expected)
    ? []
    : [`tables: ${tables.rows.length} rows differ from the ${expected.length} of the journal`]
}
