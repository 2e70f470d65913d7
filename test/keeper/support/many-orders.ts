/** Inserts many live orders at once. They are in the table, from which a keeper loads its book, and not in the journal. */
import { sql } from 'kysely'
import { priceBand } from '../../../domain/market/band.ts'
import { tickStepValue } from '../../../domain/market/market.ts'
import type { Side } from '../../../domain/orders/order.ts'
import { reservationPerStep, reservedPriceOf } from '../../../domain/orders/reservation.ts'
import type { Price, Ticks } from '../../../domain/units.ts'
import type { MarketFixture } from './market-fixture.ts'

export interface ManyOrders {
  readonly count: number
  /** The orders of one account; at most 500 by the rules of placement. */
  readonly perAccount: number
  /** The accounts; new ones if there are none. */
  readonly accounts?: readonly number[]
  readonly type?: 'LIMIT' | 'MARKET' | 'STOP_LIMIT'
  readonly side?: Side
  readonly steps?: number
  /** Ticks; 0 for a market order. */
  readonly limit?: number
  /** A reduce-only order reserves nothing. */
  readonly reduceOnly?: boolean
  /** Whether a plain order reserves: false if it reduces a position. */
  readonly opens?: boolean
  /** Ticks; 0 for an order that waits for no trigger. */
  readonly trigger?: number
  /** Unix seconds; 0 never expires. */
  readonly expiration?: number
}

/** Ticks: far below the oracle price of the tests, so that the orders do not match. */
const LIMIT = 960
const LEVERAGE = 5

async function insertAccounts({ db }: MarketFixture, count: number): Promise<readonly number[]> {
  const { rows } = await sql<{ user_id: number }>`
    insert into users (address, created_at) select '0x' || lpad(replace(gen_random_uuid()::text, '-', ''), 40, '0'), 0 from generate_series(1, ${count}::integer)
    returning user_id
  `.execute(db)
  const ids = rows.map(({ user_id }) => user_id)
  await sql`
    insert into accounts (user_id, free, reserved) select unnest(${ids}::bigint[]), 1000000000000000000000000, 0
  `.execute(db)
  return ids
}

/** Limit buys of ten steps, unless said otherwise. Returns their accounts. */
export async function insertManyOrders(
  fixture: MarketFixture,
  orders: ManyOrders,
): Promise<readonly number[]> {
  const { count, perAccount, type = 'LIMIT', side = 'LONG', steps = 10, trigger = 0, expiration = 0 } = orders
  const { limit = type === 'MARKET' ? 0 : LIMIT, reduceOnly = false, opens = !reduceOnly } = orders
  const { db, spec } = fixture
  const ids = orders.accounts ?? (await insertAccounts(fixture, Math.ceil(count / perAccount)))
  const { price } = await db.selectFrom('oracle_reports').select('price').executeTakeFirstOrThrow()
  const terms = { side, price: limit as Ticks, type, trigger: trigger as Ticks }
  const reservedPrice = reservedPriceOf(spec, terms, priceBand(spec, price as Price))
  const perStep = reservationPerStep(spec, { side, limit: terms.price, leverage: LEVERAGE, reservedPrice })
  const openable = opens ? steps : 0
  const { head } = await db
    .selectFrom('shards')
    .select('head')
    .where('shard', '=', `m${spec.marketId}`)
    .executeTakeFirstOrThrow()
  await sql`
    insert into orders (order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger,
      leverage, reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at)
    select ${`${spec.marketId}-`} || (${head} + n), ${spec.marketId}, ${head} + n, u.user_id, u.address, u.address,
      '0xmany' || gen_random_uuid(), '0x', ${head} + n, ${side}, ${type}, ${limit}, ${steps}, ${trigger}, ${LEVERAGE}, ${reduceOnly},
      ${expiration}, ${expiration}, ${trigger === 0 ? 'OPEN' : 'PENDING_TRIGGER'}, ${openable}, ${reservedPrice},
      ${(perStep * BigInt(openable)).toString()}::numeric, ${fixture.clock.value}
    from generate_series(1, ${count}::bigint) n
    join users u on u.user_id = (${ids}::bigint[])[1 + (n - 1) / ${perAccount}::bigint]
  `.execute(db)
  await sql`
    update accounts a set reserved = r.reserved
    from (select user_id, sum(reserved + held) as reserved from orders where ended_at is null group by user_id) r
    where r.user_id = a.user_id and a.user_id = any(${ids}::bigint[])
  `.execute(db)
  await sql`update shards set head = head + ${count} where shard = ${`m${spec.marketId}`}`.execute(db)
  return ids
}

/** Gives each account a mined long position at the oracle price of the tests, and the opposite of all of them to a new account. */
export async function insertLongs(
  fixture: MarketFixture,
  accounts: readonly number[],
  steps: number,
): Promise<void> {
  const { db, spec } = fixture
  const [counterparty] = await insertAccounts(fixture, 1)
  const entryOf = (size: number): bigint => BigInt(size) * 1000n * tickStepValue(spec)
  const rowOf = (user_id: number | undefined, size: number) => {
    const entry = entryOf(Math.abs(size))
    return { user_id, size, entry: entry.toString(), margin: (entry / 5n).toString() }
  }
  const rows = [...accounts.map((id) => rowOf(id, steps)), rowOf(counterparty, -steps * accounts.length)]
  await sql`
    insert into positions (user_id, market_id, size, entry_notional, folded_margin, leverage,
      matched_size, matched_entry_notional, matched_folded_margin, matched_leverage)
    select user_id, ${spec.marketId}, size, entry, margin, 5, size, entry, margin, 5
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (user_id bigint, size bigint, entry numeric, margin numeric)
  `.execute(db)
}
