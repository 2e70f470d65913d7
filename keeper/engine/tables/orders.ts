/** Orders and fills. Both stay in their tables when the state drops them: released orders, and fills that are confirmed or voided. */
import type { Statement } from '../../../db/round-trip.ts'
import type { Columns } from '../../../db/state-tables.ts'
import { fillsTable, ordersTable } from '../../../db/written-tables.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { factsOf } from '../../../domain/exchange/decide/orders/facts.ts'
import { orderColumns } from '../../../domain/exchange/order-columns.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import type { FillRow } from '../../../domain/exchange/tables/orders.ts'
import { acceptedSeq, orderIdOf } from '../../../domain/orders/order.ts'
import type { MarketId } from '../../../domain/units.ts'
import { type ChangedRows, Changes, type WrittenMark } from './changes.ts'
import { following, keeping, rowsOf, statements, type TablePart } from './part.ts'

export function orders(mark: WrittenMark, state: ExchangeState): TablePart {
  const changes = new Changes(mark, state.orders, {
    keyOf: ({ marketId, accepted }) => `${marketId}-${accepted}`,
    columnsOf: (order) => ({
      ...orderColumns(factsOf(state, order)),
      maker: state.users.need(order.account).address,
    }),
  })
  /** Orders of which something other than their record has changed. */
  const noted = new Set<string>()
  state.orderNotes.observe((before, after) => noted.add((after ?? before)?.orderId as string))
  return {
    collect() {
      for (const orderId of noted) {
        const order = state.orders.get(Number(orderId.split('-', 1)[0]) as MarketId, acceptedSeq(orderId))
        if (order !== undefined) changes.touch(order)
      }
      noted.clear()
      return keeping(ordersTable, changes.take())
    },
    giveBack: () => changes.giveBack(),
    forget() {
      noted.clear()
      changes.forget()
    },
  }
}

const fillIdOf = ({ marketId, batchId, part, seq }: FillRow): string =>
  `${marketId}-${batchId}-${part}-${seq}`

const fillColumns = (fill: FillRow): Columns => ({
  fill_id: fillIdOf(fill),
  market_id: fill.marketId,
  batch_id: fill.batchId,
  part: fill.part,
  place: fill.place,
  order_id: orderIdOf(fill.marketId, fill.accepted),
  user_id: fill.account,
  side: fill.side,
  steps: fill.steps,
  taker_steps: fill.takerSteps,
  partial_slot: fill.partialSlot,
  held: fill.held,
  status: fill.status,
})

export const fills = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(mark, state.fills, { keyOf: fillIdOf, columnsOf: fillColumns }, writeFills)

/** A fill leaves the state when its part is confirmed, or its batch is voided. */
function writeFills({ put, changed, dropped }: ChangedRows, group: readonly Entry[]): Statement[] {
  const voided = new Set(
    rowsOf(group, 'batch_voided').flatMap(({ row }) => row.fills.map(({ fill_id }) => fill_id)),
  )
  const ended = dropped.map(({ columns }) => ({
    ...columns,
    status: voided.has(columns.fill_id as string) ? 'FAILED' : 'CONFIRMED',
  }))
  return [...statements(fillsTable.put, [...put, ...ended]), ...statements(fillsTable.change, changed)]
}
