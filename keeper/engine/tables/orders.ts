/** Orders. They stay in their table when the state releases them. */
import { ordersTable } from '../../../db/written-tables.ts'
import { factsOf } from '../../../domain/exchange/decide/orders/facts.ts'
import { orderColumns } from '../../../domain/exchange/order-columns.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import { acceptedSeq } from '../../../domain/orders/order.ts'
import type { MarketId } from '../../../domain/units.ts'
import { Changes, type WrittenMark } from './changes.ts'
import { keeping, type TablePart } from './part.ts'

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
