import { type Kysely, sql } from 'kysely'

/** Events of an account within a range of times. Those of acceptance are found by `read_orders_of_user`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index read_order_changes_by_time on read.order_changes (user_id, at, arrival)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop index read.read_order_changes_by_time`.execute(db)
}
