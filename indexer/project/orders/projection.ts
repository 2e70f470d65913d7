/**
 * The projection `orders`: orders, their events and fills, positions, and the levels of the book. They are one projection because levels
 * are derived from orders and positions, fills take their protection price from their order, and events its trigger.
 */
import type { Tx } from '../../../db/client.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { Projection } from '../projection.ts'
import type { ShardEntry } from '../row-change.ts'
import { levelDeltas, touchedAccounts } from '../tables/book-levels.ts'
import { changesOf, feedFills, touchedKeys } from './changes.ts'
import { loadPositionedAccounts, loadRows, loadUncovered, renumberEvents, writesOf } from './store.ts'

async function project(tx: Tx, entries: readonly ShardEntry[]) {
  const marketId = entries[0]?.marketId ?? 0
  const touched = touchedKeys(entries)
  const [before, uncovered] = await Promise.all([
    loadRows(tx, marketId, touched),
    loadUncovered(tx, marketId, touched),
  ])
  const changes = changesOf(before, entries)
  const book = { before: before.orders, orders: changes.orders, positions: changes.positions }
  const accounts = await loadPositionedAccounts(tx, marketId, touchedAccounts(book), uncovered)
  const levels = levelDeltas(marketId, book, accounts)
  const feed = {
    ...{
      orders: changes.orders,
      fills: feedFills(before.fills, changes),
      removedParts: changes.removedFills,
    },
    ...{ positions: changes.positions, hasLevels: levels.length > 0 },
  }
  return { ...writesOf({ ...changes, levels }), feed }
}

export const orders: Projection = {
  name: 'orders',
  version: 3,
  tables: PROJECTED_TABLES.orders,
  project,
  finish: renumberEvents,
}
