import { type Kysely, sql } from 'kysely'

/**
 * Open limit orders of which not all steps can execute: how many do, by the rule of `domain/orders/executable.ts`. The orders before them
 * for the position are those with a better limit, at the same limit the reduce-only ones, then the earlier ones.
 */
const SHORTENED = `
  with open_orders as (
    select o.*, o.quantity - o.filled - o.settling as remaining, coalesce(p.size + p.pending, 0) as matched
    from read.orders o left join read.positions p using (user_id, market_id)
    where o.status = 'OPEN' and o.status_reason is null and o.price > 0 and o.quantity > o.filled + o.settling
  ), placed as (
    select *, sum(remaining) over (
      partition by market_id, user_id, side
      order by case side when 'LONG' then -price else price end, reduce_only desc, seq
    ) - remaining as before
    from open_orders
  ), shares as (
    select *, case
      when (side = 'SHORT') = (matched > 0) and matched <> 0
      then least(remaining, greatest(abs(matched) - before, 0)) else 0
    end as reducing
    from placed
  ), executable as (
    select *, reducing + least(remaining - reducing, openable) as steps from shares
  )
  select market_id, side, price, sum(remaining - steps)::bigint as quantity, count(*) filter (where steps = 0) as order_count
  from executable where steps < remaining group by market_id, side, price
`

/**
 * Levels count the steps that can execute. That takes the steps that an order's reservation covers, and what is held for its settling
 * steps. Both come from the write side; an order of which the projector has not reached the latest rows counts as covered, until its
 * reservation changes or the read model is rebuilt. The index finds the accounts whose position decides how much of their orders can execute.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.orders add column openable bigint not null default 0, add column held numeric(78, 0) not null default 0;
    update read.orders set openable = quantity - filled - settling where status in ('OPEN', 'PENDING_TRIGGER') and not reduce_only;
    update read.orders r set openable = o.openable, held = o.held from orders o
      where o.order_id = r.order_id and o.ended_at is null and r.status = o.status and r.filled = o.filled and r.settling = o.settling
        and r.reserved = o.reserved + o.held;
    alter table read.orders alter column openable drop default, alter column held drop default,
      add column uncovered bigint not null generated always as (greatest(quantity - filled - settling - openable, 0)) stored;
    create index read_orders_uncovered on read.orders (market_id, user_id) where uncovered > 0 and status = 'OPEN' and price > 0;
    with shortened as (${sql.raw(SHORTENED)})
      update read.book_levels l set quantity = l.quantity - s.quantity, order_count = l.order_count - s.order_count
      from shortened s where (l.market_id, l.side, l.price) = (s.market_id, s.side, s.price);
    delete from read.book_levels where order_count = 0
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    insert into read.book_levels as l (market_id, side, price, quantity, order_count) ${sql.raw(SHORTENED)}
      on conflict (market_id, side, price) do update
      set quantity = l.quantity + excluded.quantity, order_count = l.order_count + excluded.order_count;
    alter table read.orders drop column uncovered, drop column held, drop column openable
  `.execute(db)
}
