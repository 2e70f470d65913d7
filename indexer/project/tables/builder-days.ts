/** `read.builder_days`: volume, fills and orders of each builder by day (UTC). Pure. */
import type { Selectable } from 'kysely'
import type { ReadBuilderDaysTable } from '../../../db/read-market-data-schema.ts'
import { invariant } from '../../../domain/invariant.ts'
import { tableOf } from '../read-table.ts'
import { type ShardEntry, signOfRow } from '../row-change.ts'

export type BuilderDay = Selectable<ReadBuilderDaysTable>

/** Orders of several markets have the same builder. */
export const BUILDER_DAYS = tableOf<BuilderDay>({
  table: 'read.builder_days',
  key: ['builder', 'day'],
  columns: { builder: 'text', day: 'bigint', volume: 'numeric', fills: 'bigint', orders: 'bigint' },
  isShared: true,
})

const DAY = 86_400_000

/** In one market. `value`: sum of price × steps of its fills, in ticks. */
export interface BuilderDelta extends Omit<BuilderDay, 'volume'> {
  readonly value: bigint
}

/**
 * A row's sums for builders: an order on the day of its acceptance, a fill on the day of its auction once its part is mined. A rollback takes
 * fills back from the same day.
 */
export function builderDeltas(
  { row }: ShardEntry,
  builderOf: (orderId: string) => string | null,
): BuilderDelta[] {
  if (row.kind === 'order_placed')
    return row.builder === undefined ? [] : [delta(row.builder, row.accepted_at, { orders: 1 })]
  if (row.kind !== 'part_settled') return []
  const sign = signOfRow(row)
  return row.fills.flatMap(({ order_id, steps }) => {
    const builder = builderOf(order_id)
    const value = BigInt(sign * row.price) * BigInt(steps)
    return builder === null ? [] : [delta(builder, row.as_of ?? row.at, { value, fills: sign })]
  })
}

function present(unit: bigint | null): bigint {
  invariant(unit !== null, 'a market with fills is listed')
  return unit
}

const delta = (
  builder: string,
  at: number,
  { value = 0n, fills = 0, orders = 0 }: Partial<BuilderDelta>,
): BuilderDelta => ({ builder, day: at - (at % DAY), value, fills, orders })

/** The changes of all markets, ascending by key. `unit`: wei of one tick of one step; null in a market without fills. */
export function builderDays(
  markets: readonly { readonly unit: bigint | null; readonly deltas: readonly BuilderDelta[] }[],
): BuilderDay[] {
  const days = new Map<string, BuilderDay>()
  for (const { unit, deltas } of markets)
    for (const { builder, day, value, fills, orders } of deltas) {
      const key = `${builder} ${String(day).padStart(15, '0')}`
      const known = days.get(key)
      days.set(key, {
        builder,
        day,
        volume: (known?.volume ?? 0n) + (value === 0n ? 0n : value * present(unit)),
        fills: (known?.fills ?? 0) + fills,
        orders: (known?.orders ?? 0) + orders,
      })
    }
  return [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}
