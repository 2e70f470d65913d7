import { type Kysely, sql } from 'kysely'

/** The engine has the fills that are not final in its state, and readers have `read.fills`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop table fills`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table fills (
      fill_id text primary key,
      market_id integer not null references markets,
      batch_id bigint not null,
      part integer not null,
      place integer not null,
      order_id text not null references orders,
      user_id bigint not null references users,
      side text not null,
      steps bigint not null,
      taker_steps bigint not null,
      partial_slot integer,
      held numeric(78, 0) not null,
      status text not null
    )
  `.execute(db)
}
