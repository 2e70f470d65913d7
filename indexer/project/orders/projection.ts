/**
 * Projection of orders, events, fills, positions, book levels and builder sums. It is one projection because levels
 * need orders and positions, and fills and events need their orders.
 */
import type { Tx } from '../../../db/client.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { MarketFeed } from '../feed.ts'
import type { ChunkWrites, Projection } from '../projection.ts'
import { byMarket, type ShardEntry } from '../row-change.ts'
import { levelDeltas, positionedAccounts, touchedAccounts } from '../tables/book-levels.ts'
import { BUILDER_DAYS, builderDays } from '../tables/builder-days.ts'
import { changesOf, feedFills, type LoadedRows, type OrderChanges, touchedKeys } from './changes.ts'
import {
  loadPositionedAccounts,
  loadRows,
  loadUncovered,
  loadUnits,
  renumberEvents,
  writesOf,
} from './store.ts'

async function project(tx: Tx, entries: readonly ShardEntry[]): Promise<ChunkWrites> {
  const touched = [...byMarket(entries)].map(([marketId, own]) => ({
    marketId,
    entries: own,
    keys: touchedKeys(own),
  }))
  const [rowsOf, uncoveredOf] = await Promise.all([loadRows(tx, touched), loadUncovered(tx, touched)])
  const markets = touched.map(({ marketId, entries: own }) => {
    const before = rowsOf(marketId)
    const changes = changesOf(before, own)
    const book = { before: before.orders, orders: changes.orders, positions: changes.positions }
    const accounts = positionedAccounts(touchedAccounts(book), uncoveredOf(marketId))
    return { marketId, before, changes, book, accounts }
  })
  const [accountsOf, units] = await Promise.all([
    loadPositionedAccounts(tx, markets),
    loadUnits(
      tx,
      markets.filter(({ changes }) => changes.builders.some(({ fills }) => fills !== 0)),
    ),
  ])
  const all = markets.map(({ marketId, before, changes, book }) => ({
    before,
    marketId,
    changes: { ...changes, levels: levelDeltas(marketId, book, accountsOf(marketId)) },
  }))
  const builders = builderDays(
    markets.map(({ marketId, changes }) => ({ unit: units.get(marketId) ?? null, deltas: changes.builders })),
  )
  const writes = writesOf(all.map(({ changes }) => changes))
  return {
    ...writes,
    clauses: [...writes.clauses, BUILDER_DAYS.add(builders)],
    feed: all.map(feedOf),
  }
}

interface MarketChanges {
  readonly marketId: number
  readonly before: LoadedRows
  readonly changes: OrderChanges
}

const feedOf = ({ marketId, before, changes }: MarketChanges): MarketFeed => ({
  marketId,
  orders: changes.orders,
  fills: feedFills(before.fills, changes),
  removedParts: changes.removedFills,
  positions: changes.positions,
  hasLevels: changes.levels.length > 0,
})

export const orders: Projection = {
  name: 'orders',
  version: 3,
  tables: PROJECTED_TABLES.orders,
  project,
  finish: renumberEvents,
}
