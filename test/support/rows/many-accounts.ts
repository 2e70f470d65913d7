/** Accounts in numbers, as a prepared state has them. */
import type pg from 'pg'

export interface ManyAccounts {
  readonly count: number
  /** Time of their creation, in milliseconds. */
  readonly at: number
}

/** Users 1 to `count`, each with its number as its address. */
export async function insertAccounts(pool: pg.Pool, { count, at }: ManyAccounts): Promise<void> {
  await pool.query(
    `insert into users (user_id, address, created_at) overriding system value
     select n, '0x' || lpad(to_hex(n), 40, '0'), $2::bigint from generate_series(1, $1::bigint) n`,
    [count, at],
  )
  await pool.query('analyze users')
}
