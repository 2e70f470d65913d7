/** `read.orders` follows the rows of a batch whose fills hold more than their share of a reservation. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { MarketRow } from '../../../domain/journal/journal-row.ts'
import type { OpenOrder } from '../../../domain/orders/open-order.ts'
import { orderChanges, type ReadOrder } from '../../../indexer/project/tables/orders.ts'
import { anyBatch } from '../../domain/support/any-auction.ts'
import { placedRow } from '../../domain/support/open-orders.ts'
import { planOf } from '../../domain/support/planned.ts'

function project(rows: readonly { readonly seq: number; readonly row: MarketRow }[]): Map<string, ReadOrder> {
  const table = new Map<string, ReadOrder>()
  for (const { seq, row } of rows)
    for (const { key, apply } of orderChanges({ marketId: 1, seq, row } as Parameters<
      typeof orderChanges
    >[0])) {
      const after = apply(table.get(key as string))
      if (after !== undefined) table.set(key as string, after as ReadOrder)
    }
  return table
}

const stored = ({ openable, reserved, held, settling }: OpenOrder) => ({
  ...{ openable, reserved: reserved + held, held, settling },
})
const read = ({ openable, reserved, held, settling }: ReadOrder) => ({ openable, reserved, held, settling })

describe('reservations in read.orders', () => {
  it('when any batch is planned, they are those that the plan stores, also of fills beyond their reserved price', () => {
    fc.assert(
      fc.property(anyBatch({ minOrders: 5 }), (batch) => {
        const { before, after, plan } = planOf({
          ...batch,
          spec: { ...batch.spec, makerFee: batch.spec.takerFee },
        })
        const placed = [...before.values()].map((order) => ({ seq: order.seq, row: placedRow(order) }))
        const table = project([...placed, ...plan.rows.map((row, at) => ({ seq: 1_000 + at, row }))])
        for (const order of after.values())
          expect(read(table.get(order.orderId) as ReadOrder), order.orderId).to.deep.equal(stored(order))
      }),
      { numRuns: 300 },
    )
  })
})
