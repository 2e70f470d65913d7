/** Checks a law on every cleared batch of a generator. */
import fc from 'fast-check'
import { clear } from '../../../domain/auction/auction.ts'
import type { Cleared } from '../../../domain/auction/clearing.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import type { Seq } from '../../../domain/units.ts'
import { type AnyBatch, anyBatch, isCleared, toInput } from './any-auction.ts'

/** Runs `check` on every cleared batch. */
export const checkClearedBatches = (
  check: (clearing: Cleared, batch: AnyBatch) => void,
  batches = anyBatch({ minOrders: 5 }),
): void => {
  fc.assert(
    fc.property(batches, (batch) => {
      const clearing = clear(toInput(batch))
      if (isCleared(clearing)) check(clearing, batch)
    }),
    { numRuns: 400 },
  )
}

export const orderOf = ({ orders }: AnyBatch, seq: Seq): RestingOrder =>
  orders.find((order) => order.seq === seq) as RestingOrder
export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
