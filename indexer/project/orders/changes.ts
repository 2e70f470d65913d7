/** Computes what a chunk of journal rows changes in the tables of the projection `orders`, from the rows that it touches. Pure. */

import type { FeedFill } from '../../../db/feed-changes.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { RowChanges, type ShardEntry } from '../row-change.ts'
import type { LevelDelta } from '../tables/book-levels.ts'
import { type BuilderDelta, builderDeltas } from '../tables/builder-days.ts'
import { type FillWrites, fillChanges, fillWrites, type PartFills, partKey } from '../tables/fills.ts'
import type { PartRef, ReadOrderEvent, SourceEvents } from '../tables/order-events.ts'
import { belongsTo, orderEvents, rolledBackEvents, withTrigger } from '../tables/order-events.ts'
import { orderChanges, type ReadOrder } from '../tables/orders.ts'
import { positionChanges, type ReadPosition } from '../tables/positions.ts'

/** Rows before the chunk, by the keys of their changes. */
export interface LoadedRows {
  readonly orders: Map<string, ReadOrder>
  readonly fills: Map<string, PartFills>
  readonly positions: Map<string, ReadPosition>
}

/** Keys of the rows that the chunk changes and that may exist already. */
export interface TouchedKeys {
  readonly orders: Set<string>
  readonly fills: Set<string>
  readonly positions: Set<string>
  /** Accounts of the changed orders and positions that the rows name. */
  readonly accounts: Set<number>
  /** Changed orders that the rows name without their account. */
  readonly unowned: Set<string>
}

/** Changes of a chunk. A row replaces the row with its key; level deltas are added. */
export interface OrderChanges {
  readonly orders: readonly ReadOrder[]
  readonly fills: readonly PartFills[]
  readonly fillWrites: FillWrites
  readonly removedFills: readonly PartRef[]
  readonly positions: readonly ReadPosition[]
  readonly events: readonly ReadOrderEvent[]
  readonly removedEvents: readonly SourceEvents[]
  readonly levels: readonly LevelDelta[]
  readonly builders: readonly BuilderDelta[]
}

/** Keys to load before `changesOf`, without orders that the chunk itself places. */
export function touchedKeys(entries: readonly ShardEntry[]): TouchedKeys {
  const keys = (changes: (entry: ShardEntry) => { key: string }[]) =>
    new Set(entries.flatMap((entry) => changes(entry).map(({ key }) => key)))
  const orders = keys(orderChanges)
  const positions = keys(positionChanges)
  const accounts = new Set([...positions].map(Number))
  const unowned = new Set<string>()
  for (const { row } of entries) {
    if (row.kind === 'order_placed') orders.delete(row.order_id)
    for (const userId of ownersOf(row)) accounts.add(userId)
    for (const orderId of unownedBy(row)) unowned.add(orderId)
  }
  return {
    orders,
    fills: keys((entry) => fillChanges(entry, () => undefined)),
    positions,
    accounts,
    unowned,
  }
}

/** Accounts of the orders that the row changes, unless it changes their positions. */
function ownersOf(row: JournalRow): readonly number[] {
  switch (row.kind) {
    case 'order_placed':
    case 'order_triggered':
    case 'order_ending':
    case 'order_ended':
    case 'reservation_changed':
      return [row.user_id]
    case 'orders_protected':
    case 'part_settled':
    case 'positions_moved':
      return (row.orders ?? []).map(({ user_id }) => user_id)
    default:
      return []
  }
}

function unownedBy(row: JournalRow): readonly string[] {
  switch (row.kind) {
    case 'batch_cleared':
      return row.closing.map(({ order_id }) => order_id)
    case 'batch_voided':
      return [...row.reopened, ...(row.restored ?? [])]
    default:
      return []
  }
}

/** Applies the journal rows in order. Events are derived after the row's changes. Book levels follow from the result, see `levelDeltas`. */
export function changesOf(before: LoadedRows, entries: readonly ShardEntry[]): Omit<OrderChanges, 'levels'> {
  const orders = new RowChanges(before.orders)
  const fills = new RowChanges(before.fills)
  const positions = new RowChanges(before.positions)
  const removedEvents: SourceEvents[] = []
  const builders: BuilderDelta[] = []
  let events: ReadOrderEvent[] = []
  const orderOf = (orderId: string) => orders.get(orderId)
  const builderOf = (orderId: string) => orderOf(orderId)?.builder ?? null

  for (const entry of entries) {
    for (const change of fillChanges(entry, orderOf)) fills.apply(change)
    for (const change of positionChanges(entry)) positions.apply(change)
    for (const change of orderChanges(entry)) orders.apply(change)
    builders.push(...builderDeltas(entry, builderOf))
    const removed = rolledBackEvents(entry)
    if (removed !== null) {
      removedEvents.push(removed)
      events = events.filter((event) => !belongsTo(event, removed))
    }
    events.push(...orderEvents(entry).map((event) => withTrigger(event, orders.get(event.order_id))))
  }
  const removedFills = rolledBackFills(entries)
  const removed = partsOf(removedFills)
  const changedFills = fills.changed()
  return {
    orders: orders.changed(),
    fills: changedFills,
    fillWrites: fillWrites(changedFills, ({ batch_id, part }) => {
      const key = partKey(batch_id, part)
      return removed.has(key) ? [] : (before.fills.get(key) ?? [])
    }),
    removedFills,
    positions: positions.changed(),
    events,
    removedEvents,
    builders,
  }
}

/** Rolled-back parts that had unmatched fills. Their rows are deleted before the part's rows are written. */
function rolledBackFills(entries: readonly ShardEntry[]): PartRef[] {
  return entries.flatMap(({ marketId, row }) => {
    if (row.kind !== 'part_settled' || !row.rollback || row.fills.every(({ matched }) => matched)) return []
    return [{ market_id: marketId, batch_id: row.batch_id, part: row.part }]
  })
}

const partsOf = (parts: readonly PartRef[]): Set<string> =>
  new Set(parts.map(({ batch_id, part }) => partKey(batch_id, part)))

/** The fills for the feed, each with whether readers have it: they drop those of removed parts first. */
export function feedFills(
  before: LoadedRows['fills'],
  { fills, removedFills }: Pick<OrderChanges, 'fills' | 'removedFills'>,
): FeedFill[] {
  const removed = partsOf(removedFills)
  const known = new Set(
    [...before].flatMap(([key, part]) => (removed.has(key) ? [] : part.map(({ fill_id }) => fill_id))),
  )
  return fills.flatMap((part) => part.map((fill) => ({ ...fill, is_known: known.has(fill.fill_id) })))
}
