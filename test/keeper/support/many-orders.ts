/** Inserts many live orders at once. They are in the table, from which a keeper loads its book, and not in the journal. */
import { sql } from 'kysely'
import type { MarketFixture } from './market-fixture.ts'

export interface ManyOrders {
  readonly count: number
  /** The orders of one account; at most 500 by the rules of placement. */
  readonly perAccount: number
  readonly type?: 'LIMIT' | 'STOP_LIMIT'
  /** Ticks; 0 for an order that waits for no trigger. */
  readonly trigger?: number
  /** Unix seconds; 0 never expires. */
  readonly expiration?: number
}

/** Ticks: far below the oracle price of the tests, so that the orders do not match. */
const LIMIT = 960
/** Wei reserved by one order. */
const RESERVED = 7n

/** Limit buys of ten steps. Returns the accounts, which exist from now on. */
export async function insertManyOrders(
  fixture: MarketFixture,
  orders: ManyOrders,
): Promise<readonly number[]> {
  const { count, perAccount, type = 'LIMIT', trigger = 0, expiration = 0 } = orders
  const { db, spec } = fixture
  const accounts = Math.ceil(count / perAccount)
  const { rows } = await sql<{ user_id: number }>`
    insert into users (address, created_at) select '0xmany' || gen_random_uuid(), 0 from generate_series(1, ${accounts}::integer)
    returning user_id
  `.execute(db)
  const ids = rows.map(({ user_id }) => user_id)
  await sql`
    insert into accounts (user_id, free, reserved) select unnest(${ids}::bigint[]), 1000000000000000000000000, 0
  `.execute(db)
  const head = await db
    .selectFrom('shards')
    .select('head')
    .where('shard', '=', `m${spec.marketId}`)
    .executeTakeFirstOrThrow()
  await sql`
    insert into orders (order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger,
      leverage, reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at)
    select ${`${spec.marketId}-`} || (${head.head} + n), ${spec.marketId}, ${head.head} + n, u.user_id, u.address, u.address,
      '0xmany' || gen_random_uuid(), '0x', n, 'LONG', ${type}, ${LIMIT}, 10, ${trigger}, 5, false, ${expiration}, ${expiration},
      ${type === 'LIMIT' ? 'OPEN' : 'PENDING_TRIGGER'}, 10, ${LIMIT}, ${RESERVED}::numeric, ${fixture.clock.value}
    from generate_series(1, ${count}::bigint) n
    join users u on u.user_id = (${ids}::bigint[])[1 + (n - 1) / ${perAccount}::bigint]
  `.execute(db)
  await sql`
    update accounts a set reserved = r.reserved from resting r where r.user_id = a.user_id and a.user_id = any(${ids}::bigint[])
  `.execute(db)
  await sql`update shards set head = head + ${count} where shard = ${`m${spec.marketId}`}`.execute(db)
  return ids
}
