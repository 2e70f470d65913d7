import { type Kysely, sql } from 'kysely'

/**
 * Flags of orders that no signature covers, and replacements. `unused`: signed steps beyond `quantity`, which the order must not fill because the
 * order that it has replaced had filled them. `replaces`: the id of that order.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const columns = `
    add time_in_force text not null default 'gtc' check (time_in_force in ('gtc', 'ioc')),
    add post_only boolean not null default false,
    add unused bigint not null default 0 check (unused >= 0),
    add replaces text
  `
  await sql.raw(`alter table orders ${columns}; alter table read.orders ${columns}`).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  const columns = 'drop replaces, drop unused, drop post_only, drop time_in_force'
  await sql.raw(`alter table read.orders ${columns}; alter table orders ${columns}`).execute(db)
}
