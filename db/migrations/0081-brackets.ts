import { type Kysely, sql } from 'kysely'

/** `bracket`: the number that links an order with the entry and the exits of its bracket; 0: none. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const columns = 'add bracket bigint not null default 0 check (bracket between 0 and 4294967295)'
  await sql.raw(`alter table orders ${columns}; alter table read.orders ${columns}`).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table read.orders drop bracket; alter table orders drop bracket').execute(db)
}
