/** Live orders by the label that their trader gave them, which no two live orders of an account may share. */
import type { Read } from '../../db/round-trip.ts'
import type { Command } from './command.ts'
import { labelKey } from './state-keys.ts'

export interface LabelledOrder {
  readonly user_id: number
  readonly client_order_id: string
  readonly order_id: string
  readonly hash: string
}

/** The offset keeps the planner from flattening the subquery: each label is a lookup in the index of live orders. */
const LABELLED = `
  select o.*
  from unnest($1::bigint[], $2::text[]) k (user_id, label)
  cross join lateral (
    select user_id, client_order_id, order_id, hash from orders
    where user_id = k.user_id and client_order_id = k.label and ended_at is null offset 0
  ) o
`

/**
 * The live orders, in any market, with a label that a placement of the commands has. The accounts must be locked: every placement locks its
 * account, so that no other market accepts an order with the label meanwhile.
 */
export function labelledOrders(commands: readonly Command[]): Read<LabelledOrder> | null {
  const labels = new Map<string, readonly [number, string]>()
  for (const { userId, items } of commands)
    for (const item of items)
      if (item.kind === 'place' && item.clientOrderId !== null)
        labels.set(labelKey(userId, item.clientOrderId), [userId, item.clientOrderId])
  if (labels.size === 0) return null
  const keys = [...labels.values()]
  const values = [keys.map(([userId]) => userId), keys.map(([, label]) => label)]
  return { name: 'command-labelled', text: LABELLED, values }
}

/** By `labelKey`. More than one order has a label only after a rollback of the chain has revived an ended one. */
export const byLabel = (orders: readonly LabelledOrder[]): Map<string, readonly LabelledOrder[]> =>
  Map.groupBy(orders, (order) => labelKey(order.user_id, order.client_order_id))
