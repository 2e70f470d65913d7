/** Collects the changes of orders in one transaction, with the journal rows that record them. */
import { invariant } from '../invariant.ts'
import type { MarketRow } from '../journal/journal-row.ts'
import type { Quote, Seq, UserId } from '../units.ts'
import { type OpenOrder, type OrderChange, withheldBy } from './open-order.ts'

/** Writes of a transaction about a market's orders. */
export interface OrderPlan {
  readonly orders: readonly OpenOrder[]
  /** Change of each account's reservation in wei: `reserved` plus `held`. */
  readonly reserved: ReadonlyMap<UserId, Quote>
  /** Rows in application order. */
  readonly rows: readonly MarketRow[]
}

/** Orders of one plan, before and after its changes. */
export class OrderChanges {
  readonly rows: MarketRow[] = []
  readonly #before: ReadonlyMap<Seq, OpenOrder>
  readonly #after = new Map<Seq, OpenOrder>()

  constructor(orders: ReadonlyMap<Seq, OpenOrder>) {
    this.#before = orders
  }

  has(seq: Seq): boolean {
    return this.#before.has(seq)
  }

  get(seq: Seq): OpenOrder {
    const order = this.#after.get(seq) ?? this.#before.get(seq)
    invariant(order !== undefined, 'the order belongs to the plan')
    return order
  }

  set(order: OpenOrder): void {
    this.#after.set(order.seq, order)
  }

  put({ order, row }: OrderChange): void {
    this.set(order)
    this.rows.push(row)
  }

  putIf(change: OrderChange | null): void {
    if (change !== null) this.put(change)
  }

  plan(): OrderPlan {
    return { orders: this.changed(), reserved: this.reservedDeltas(), rows: this.rows }
  }

  changed(): OpenOrder[] {
    return [...this.#after.values()]
  }

  reservedDeltas(): Map<UserId, Quote> {
    const deltas = new Map<UserId, Quote>()
    for (const order of this.#after.values()) {
      const change = withheldBy(order) - withheldBy(this.#before.get(order.seq) as OpenOrder)
      if (change !== 0n) deltas.set(order.account, ((deltas.get(order.account) ?? 0n) + change) as Quote)
    }
    return deltas
  }
}
