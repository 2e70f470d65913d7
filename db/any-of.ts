/** Lists in statements. */
import { type RawBuilder, sql } from 'kysely'

/**
 * The right side of `where(column, '=', anyOf(…))`: the column is one of the values. They are one parameter, because a statement may have
 * 65,535, and its text does not depend on their number, so that it can be prepared.
 */
export const anyOf = <Value>(type: 'bigint' | 'text', values: Iterable<Value>): RawBuilder<Value> =>
  sql<Value>`any(${[...values]}::${sql.raw(type)}[])`
