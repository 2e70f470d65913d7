/** Runs one batch without a database: clear, decide, plan. */
import { type BatchOutcome, clearAndMatch } from '../../../domain/auction/batch.ts'
import {
  affectedOrders,
  decideBatch,
  type MarketPlan,
  planBatch,
  sideChanges,
} from '../../../domain/auction/batch-plan.ts'
import { overdue } from '../../../domain/auction/candidates.ts'
import { Book } from '../../../domain/book/book.ts'
import { highestPrice } from '../../../domain/market/market.ts'
import type { OpenOrder } from '../../../domain/orders/open-order.ts'
import type { Funds } from '../../../domain/orders/recompute-reservations.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import { minOf, type Quote, type Seq, type UserId } from '../../../domain/units.ts'
import { type AnyBatch, toInput } from './any-auction.ts'
import { bySeq, openOrder } from './open-orders.ts'

export interface Planned {
  readonly before: ReadonlyMap<Seq, OpenOrder>
  readonly after: ReadonlyMap<Seq, OpenOrder>
  readonly outcome: BatchOutcome
  readonly plan: MarketPlan
  /** See `sideChanges`. */
  readonly sideChanges: ReadonlyMap<UserId, number>
}

/** The journal head that every planned batch reads. */
export const HEAD = 900 as Seq

const PLENTY: Funds = { free: (10n ** 40n) as Quote, reserved: 0n as Quote }

/** `fundsOf`: the funds of an account; by default more than any order needs. */
export function planOf(batch: AnyBatch, fundsOf: (account: UserId) => Funds = () => PLENTY): Planned {
  const { spec, asOf } = batch
  // Liquidations have no stored order, and no reservation is computed above the highest price.
  const resting = batch.orders
    .filter(({ forced }) => !forced)
    .map((order) => ({ ...order, reservedPrice: minOf(order.reservedPrice, highestPrice(spec)) }))
  const before = bySeq(resting.map((order) => openOrder(spec, order)))
  const book = Book.of(resting)
  const outcome = clearAndMatch(toInput(batch, resting))
  const decision = decideBatch(spec, book, overdue(book, asOf), outcome, fundsOf)
  const changes = sideChanges(decision, book)
  const affected = affectedOrders(decision, book)
  const orders = new Map([...before].filter(([seq]) => affected.has(seq)))
  const oracle: OracleReport = { price: batch.oracle, observedAt: asOf, signatures: '0x' }
  const plan = planBatch({
    ...{ spec, asOf, at: asOf, batchId: 7, oracle, decision, orders },
    head: HEAD,
    slots: new Map(),
  })
  return { before, after: new Map([...before, ...bySeq(plan.orders)]), outcome, plan, sideChanges: changes }
}
