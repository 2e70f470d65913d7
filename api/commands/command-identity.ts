/** By what repeated commands are recognised, and how to find what an earlier attempt has stored. */

import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { cancelKey, placementKey, requestKey } from '../../domain/exchange/decide/orders/command-keys.ts'
import type { TimeInForce } from '../../domain/orders/order.ts'
import { ApiError } from '../errors.ts'
import type { PlaceOrderBody } from '../order-entry/schema.ts'
import { storedRequest } from './client-requests.ts'
import type { ClientRequest } from './command.ts'
import type { CommandIdentity, Finding } from './earlier-attempts.ts'
import { createSharedRead } from './shared-read.ts'

const NOT_PLACED: Finding = { outcome: 'not_placed' }

/** An order of an account, before it is parsed. */
export interface SaltedOrder {
  readonly marketId: number
  readonly maker: string
  readonly salt: string
}

/** `body` has the schema of a placement. */
export const saltedOrder = (
  maker: string,
  { market_id, salt }: Pick<PlaceOrderBody, 'market_id' | 'salt'>,
): SaltedOrder => ({ marketId: Number(market_id), maker, salt })

export const keyOfSalt = ({ marketId, maker, salt }: SaltedOrder): string =>
  placementKey(marketId, maker, salt)

export interface StoredHash {
  readonly order_id: string
  readonly hash: string
  readonly ended_at: number | null
  readonly time_in_force: TimeInForce
  readonly post_only: boolean
  readonly replaces: string | null
  readonly bracket: number
  readonly builder: string | null
}

/** No order has a salt of this size. */
const SALTS = 2n ** 53n

/** Reads orders by their salts. */
export type FindBySalt = (order: SaltedOrder) => Promise<StoredHash | undefined>

async function readBySalts(db: Db, orders: readonly SaltedOrder[]): Promise<Map<string, StoredHash>> {
  const { rows } = await sql<StoredHash & { at: number }>`
    select w.at::int as at, o.order_id, o.hash, o.ended_at, o.time_in_force, o.post_only, o.replaces, o.bracket,
      o.builder
    from unnest(
      ${orders.map(({ marketId }) => marketId)}::bigint[], ${orders.map(({ maker }) => maker)}::text[],
      ${orders.map(({ salt }) => salt)}::bigint[]
    ) with ordinality as w(market_id, maker, salt, at)
    join orders o on o.market_id = w.market_id and o.maker = w.maker and o.salt = w.salt and not o.forced
  `.execute(db)
  return new Map(rows.map(({ at, ...stored }) => [keyOfSalt(orders[at - 1] as SaltedOrder), stored]))
}

/** A flood of refused placements costs few statements. */
export function createFindBySalt(db: Db): FindBySalt {
  const find = createSharedRead<SaltedOrder, StoredHash>(keyOfSalt, (orders) => readBySalts(db, orders))
  return async (order) => (BigInt(order.salt) >= SALTS ? undefined : find(order))
}

/** `hash` is null before the order is parsed: another order with the salt may have been placed. */
export const placementIdentity = (
  findBySalt: FindBySalt,
  order: SaltedOrder,
  hash: string | null,
): CommandIdentity => ({
  key: keyOfSalt(order),
  async find() {
    const stored = await findBySalt(order)
    if (stored === undefined || (hash !== null && stored.hash !== hash)) return NOT_PLACED
    const { order_id, hash: order_hash } = stored
    return { outcome: hash === null ? 'unknown' : 'placed', facts: { order_id, order_hash } }
  },
})

export const requestIdentity = (db: Db, userId: number, request: ClientRequest): CommandIdentity => ({
  key: requestKey(userId, request.id),
  async find() {
    try {
      return (await storedRequest(db, userId, request)) === null ? NOT_PLACED : { outcome: 'placed' }
    } catch (error) {
      // Another command has the id.
      if (error instanceof ApiError) return NOT_PLACED
      throw error
    }
  },
})

/** An order that has ended, or will end with its batch, may have been cancelled by an earlier attempt. */
export const cancelIdentity = (db: Db, userId: number, hash: string): CommandIdentity => ({
  key: cancelKey(userId, hash),
  async find() {
    const order = await db
      .selectFrom('orders')
      .select(['ended_at', 'closing_reason'])
      .where('hash', '=', hash)
      .where('user_id', '=', userId)
      .executeTakeFirst()
    const isClosing = order !== undefined && (order.ended_at !== null || order.closing_reason !== null)
    return isClosing ? { outcome: 'unknown' } : NOT_PLACED
  },
})
