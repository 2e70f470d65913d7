/** The fills that the journals of a test's database have matched, final ones included. */
import type { Db } from '../../../db/client.ts'
import type { FillRow } from '../../../domain/exchange/tables/orders.ts'
import { orderIdOf } from '../../../domain/orders/order.ts'
import type { FillStatus } from '../../../domain/orders/order-state.ts'
import { StoredState } from './stored-state.ts'

export type MatchedFill = Omit<FillRow, 'status'> & {
  readonly fillId: string
  readonly orderId: string
  readonly status: FillStatus
}

const named = (fill: FillRow, status: FillStatus): MatchedFill => ({
  ...fill,
  status,
  fillId: [fill.marketId, fill.batchId, fill.part, fill.seq].join('-'),
  orderId: orderIdOf(fill.marketId, fill.accepted),
})

/** In the order of their matches. A fill leaves the state when its part is confirmed, or its batch is voided. */
export async function matchedFills(db: Db): Promise<readonly MatchedFill[]> {
  const stored = new StoredState(db, true)
  const found = new Map<string, MatchedFill>()
  stored.state.fills.observe((before, after) => {
    const fill = after ?? (before as FillRow)
    const matched = named(fill, after?.status ?? (fill.status === 'MINED' ? 'CONFIRMED' : 'FAILED'))
    found.set(matched.fillId, matched)
  })
  await stored.follow()
  return [...found.values()]
}
