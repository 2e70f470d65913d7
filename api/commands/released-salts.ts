/** Finds released orders by their salts. Programs count salts up, so a new salt usually exceeds every salt of its account. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { Seq } from '../../domain/units.ts'
import type { FindBySalt, SaltedOrder, StoredHash } from './command-identity.ts'
import { createSharedRead } from './shared-read.ts'

/** The order with the salt among the orders that the engine has released up to the market's row `upTo`. */
export type FindReleased = (order: SaltedOrder, upTo: Seq) => Promise<StoredHash | undefined>

type Salts = Pick<SaltedOrder, 'marketId' | 'maker'>

/** Pairs of market and account in the cache. */
const SIZE = 50_000

const keyOf = ({ marketId, maker }: Salts): string => `${marketId}:${maker}`

/** Accounts without an order are omitted. The subselects are those of `stored-orders.ts`. */
async function readHighest(db: Db, accounts: readonly Salts[]): Promise<Map<string, number>> {
  const { rows } = await sql<{ at: number; salt: number }>`
    select w.at::int as at, o.salt
    from unnest(
      (select ${accounts.map(({ marketId }) => marketId)}::bigint[]),
      (select ${accounts.map(({ maker }) => maker)}::text[])
    ) with ordinality as w(market_id, maker, at)
    cross join lateral (
      select salt from orders where market_id = w.market_id and maker = w.maker and not forced order by salt desc limit 1
    ) o
  `.execute(db)
  return new Map(rows.map(({ at, salt }) => [keyOf(accounts[at - 1] as Salts), salt]))
}

/** Reads the highest salt of an account once for each release, and an order only if its salt is not above it. */
export function createFindReleased(db: Db, findBySalt: FindBySalt): FindReleased {
  const find = createSharedRead<Salts, number>(keyOf, (accounts) => readHighest(db, accounts))
  const highest = new Map<string, { readonly upTo: Seq; readonly salt: number }>()

  return async (order, upTo) => {
    const key = keyOf(order)
    let known = highest.get(key)
    if (known === undefined || known.upTo < upTo) {
      known = { upTo, salt: (await find(order)) ?? -1 }
      if (highest.size >= SIZE) highest.clear()
      highest.set(key, known)
    }
    return Number(order.salt) > known.salt ? undefined : findBySalt(order)
  }
}
