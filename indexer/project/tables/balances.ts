/**
 * `read.balances`: free balance, reservation and pending withdrawal per account, as a sum of deltas, so that the order
 * in which shards are projected does not matter.
 */

import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { byMarket, type ShardEntry, signedWei } from '../row-change.ts'

export interface BalanceDelta {
  readonly user_id: number
  readonly free: bigint
  readonly reserved: bigint
  readonly pending_withdrawal: bigint
}

const BALANCES = tableOf<BalanceDelta>({
  table: 'read.balances',
  key: ['user_id'],
  columns: { user_id: 'bigint', free: 'numeric', reserved: 'numeric', pending_withdrawal: 'numeric' },
  isShared: true,
})

export const balances: Projection = {
  name: 'balances',
  version: 1,
  tables: PROJECTED_TABLES.balances,
  async project(_tx, entries) {
    const markets = [...byMarket(entries)].map(([marketId, own]) => ({
      marketId,
      deltas: own.flatMap(balanceDeltas),
    }))
    const feed = markets.map(({ marketId, deltas }) => ({
      marketId,
      balancesOf: [...new Set(deltas.map(({ user_id }) => user_id))],
    }))
    return { clauses: [BALANCES.add(sumDeltas(markets.flatMap(({ deltas }) => deltas)))], feed }
  },
}

function balanceDeltas({ row }: ShardEntry): BalanceDelta[] {
  switch (row.kind) {
    case 'user_created':
      return [delta(row.user_id, {})]
    case 'balance_changed':
      return [
        delta(row.user_id, {
          free: signedWei(row, row.free_delta),
          pending_withdrawal: signedWei(row, row.pending_withdrawal_delta),
        }),
      ]
    case 'order_placed':
      return [delta(row.user_id, { reserved: BigInt(row.reserved) })]
    case 'order_triggered':
    case 'order_ending':
    case 'order_ended':
    case 'reservation_changed':
    case 'adjustment_changed':
      return [delta(row.user_id, { reserved: BigInt(row.reserved_delta) })]
    case 'positions_moved':
      return row.balances.map(({ user_id, free_delta }) =>
        delta(user_id, { free: signedWei(row, free_delta) }),
      )
    case 'part_settled':
      return [
        ...row.fills.map(({ user_id, free_delta, from_pending, held }) =>
          delta(user_id, {
            free: signedWei(row, free_delta) + signedWei(row, from_pending),
            reserved: -signedWei(row, held),
            pending_withdrawal: -signedWei(row, from_pending),
          }),
        ),
        ...row.orders.map(({ user_id, reserved_delta }) =>
          delta(user_id, { reserved: signedWei(row, reserved_delta) }),
        ),
      ]
    default:
      return []
  }
}

/** One delta per account, ascending by account: shards that are projected concurrently lock rows in the same order. */
function sumDeltas(deltas: Iterable<BalanceDelta>): BalanceDelta[] {
  const sums = new Map<number, BalanceDelta>()
  for (const delta of deltas) {
    const sum = sums.get(delta.user_id)
    sums.set(delta.user_id, sum === undefined ? delta : add(sum, delta))
  }
  return [...sums.values()].sort((a, b) => a.user_id - b.user_id)
}

const delta = (userId: number, changes: Partial<Omit<BalanceDelta, 'user_id'>>): BalanceDelta => ({
  user_id: userId,
  free: 0n,
  reserved: 0n,
  pending_withdrawal: 0n,
  ...changes,
})

const add = (a: BalanceDelta, b: BalanceDelta): BalanceDelta => ({
  user_id: a.user_id,
  free: a.free + b.free,
  reserved: a.reserved + b.reserved,
  pending_withdrawal: a.pending_withdrawal + b.pending_withdrawal,
})
