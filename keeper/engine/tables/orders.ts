/**
 * Orders, for commands that repeat or name them. A row is written when the order is accepted, triggered, begins to
 * close and ends, and stays. The read model has a live order's fills.
 */
import type { Columns } from '../../../db/state-tables.ts'
import { ordersTable } from '../../../db/written-tables.ts'
import { factsOf } from '../../../domain/exchange/decide/orders/facts.ts'
import { orderColumns } from '../../../domain/exchange/order-columns.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import type { OrderRow } from '../../../domain/exchange/tables/orders.ts'
import { acceptedSeq } from '../../../domain/orders/order.ts'
import type { MarketId } from '../../../domain/units.ts'
import { Changes, type WrittenMark } from './changes.ts'
import { keeping, type TablePart } from './part.ts'

/** All columns of an order, with its account's address. */
export const columnsIn =
  (state: ExchangeState) =>
  (order: OrderRow): Columns => ({
    ...orderColumns(factsOf(state, order)),
    maker: state.users.need(order.account).address,
  })

/** Columns that readers need of a live order. */
const liveColumns = ({ seq, closingReason, endedAt }: OrderRow): Columns => ({
  seq,
  closing_reason: closingReason,
  ended_at: endedAt,
})

export function orders(mark: WrittenMark, state: ExchangeState): TablePart {
  const columnsOf = columnsIn(state)
  const changes = new Changes(mark, state.orders, {
    keyOf: ({ marketId, accepted }) => `${marketId}-${accepted}`,
    columnsOf,
    comparedOf: (order) => (order.endedAt === null ? liveColumns(order) : columnsOf(order)),
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
