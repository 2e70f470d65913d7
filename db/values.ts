/** Values in statements, other than one parameter each. */
import { type RawBuilder, sql } from 'kysely'

/**
 * Right side of `where(column, '=', anyOf(…))`. The values are one parameter: statements have at most 65,535, and their
 * text must not depend on the number, so that they can be prepared.
 */
export const anyOf = <Value>(type: 'bigint' | 'text', values: Iterable<Value>): RawBuilder<Value> =>
  sql<Value>`any(${[...values]}::${sql.raw(type)}[])`

/**
 * A constant that stands in the statement's text. The plan of a prepared statement may serve all values of its parameters; a partial index
 * is used only if its condition follows from constants.
 */
export const constant = <const Value extends string | number | boolean>(value: Value): RawBuilder<Value> =>
  sql.lit(value)
