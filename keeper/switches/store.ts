/** Dead-man switches in Postgres: fires those that are due and cancels the orders of their accounts. */
import { sql } from 'kysely'
import { lockAccounts, reserveCovered } from '../../db/accounts.ts'
import { deleteFiredSwitches, fireDueSwitches } from '../../db/cancel-switches.ts'
import type { Db, Tx } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { CLOSABLE, endOrders, type OrderRow, toOpenOrder } from '../../db/orders.ts'
import { marketsWithOrders } from '../../db/resting.ts'
import { MAX_ORDERS_PER_TURN } from '../../domain/auction/turn-bound.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import { closeOrders } from '../../domain/orders/close-orders.ts'
import type { MarketId, Millis, UserId } from '../../domain/units.ts'
import type { FiredSwitch, SwitchStore } from './ports.ts'

/** Bound of the fired switches that are processed together; the others follow at once. */
const MAX_SWITCHES = 500

/** The oldest open orders of the accounts in the market that were accepted before their switch fired. The caller holds the shard's lock. */
async function ordersToCancel(tx: Tx, marketId: MarketId, fired: readonly FiredSwitch[]) {
  const firedAt = new Map(fired.map((one) => [one.account, one.firedAt]))
  const { rows } = await sql<OrderRow>`
    select o.* from unnest(${[...firedAt.keys()]}::bigint[], ${[...firedAt.values()]}::bigint[]) f (user_id, fired_at)
    cross join lateral (
      select * from orders where market_id = ${marketId} and user_id = f.user_id and ${CLOSABLE}
        and accepted_at <= f.fired_at
      offset 0
    ) o
    order by o.seq limit ${MAX_ORDERS_PER_TURN}
  `.execute(tx)
  return rows.map(toOpenOrder)
}

export const createSwitchStore = (db: Db): SwitchStore => ({
  fire: (fence, now, reachableSince) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, ACCOUNTS_SHARD)
      await checkFence(tx, fence)
      const row = await fireDueSwitches(tx, now, reachableSince)
      if (row.accounts.length + row.connections.length > 0) await appendRows(tx, head, [row])
    }),

  async fired() {
    const rows = await db
      .selectFrom('fired_switches')
      .select(['user_id', 'fired_at'])
      .orderBy('fired_at')
      .orderBy('user_id')
      .limit(MAX_SWITCHES)
      .execute()
    return rows.map(({ user_id, fired_at }) => ({ account: user_id as UserId, firedAt: fired_at as Millis }))
  },

  markets: (fired) =>
    db.transaction().execute(async (tx) => {
      const accounts = fired.map(({ account }) => account)
      await lockAccounts(tx, accounts)
      return (await marketsWithOrders(tx, accounts)) as MarketId[]
    }),

  cancel: (fence, marketId, fired, at) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(marketId))
      await checkFence(tx, fence)
      const orders = await ordersToCancel(tx, marketId, fired)
      const closed = closeOrders(orders, 'DEAD_MAN_SWITCH', at)
      await endOrders(tx, closed.orders)
      await appendRows(tx, head, closed.rows)
      await reserveCovered(tx, closed.reserved)
      return orders.length
    }),

  forget: (fence, fired) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, ACCOUNTS_SHARD)
      await checkFence(tx, fence)
      await deleteFiredSwitches(tx, fired)
      const completed = fired.map(({ account, firedAt }) => ({ user_id: account, fired_at: firedAt }))
      await appendRows(tx, head, [{ kind: 'switches_completed', fired: completed }])
    }),

  async next() {
    const { rows } = await sql<{ due_at: Millis | null; has_fired: boolean }>`
      select least(
        (select fire_at from cancel_switches order by fire_at limit 1),
        (select fire_at from connection_switches order by fire_at limit 1)
      ) as due_at, exists (select from fired_switches) as has_fired
    `.execute(db)
    const { due_at, has_fired } = rows[0] as (typeof rows)[0]
    return { dueAt: due_at, hasFired: has_fired }
  },
})
