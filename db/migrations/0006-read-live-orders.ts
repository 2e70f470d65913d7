import { type Kysely, sql } from 'kysely'

/** A trader asks for his open orders all day: finding them must not cost a look at all that he ever placed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index read_orders_live on read.orders (user_id, accepted_at, order_id)
      where status in ('OPEN', 'PENDING_TRIGGER', 'CANCEL_PENDING_FINALIZE')
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop index read.read_orders_live`.execute(db)
}
