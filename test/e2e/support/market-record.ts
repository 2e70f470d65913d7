/** One market in the model: what its log says of each order, and beside it what the model says. */
import type { BatchCleared, MarketRow, PartSettled } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { OrderStatus, StatusReason } from '../../../domain/orders/order.ts'
import type { Position } from '../../../domain/positions/position.ts'
import type { Millis, Ticks } from '../../../domain/units.ts'
import { Model } from '../../support/order-model.ts'
import type { Auction, ModelOrder } from '../../support/order-model-terms.ts'

/** An order as the rows of the log add up. */
interface Written {
  status: OrderStatus
  reason: StatusReason | null
  filled: number
  settling: number
  /** What it holds back, settling fills included. */
  reserved: bigint
}

const textOf = ({ status, reason, filled, settling, reserved }: Written): string =>
  `${status} ${reason}, ${filled} filled, ${settling} settling, reserves ${reserved}`

export class MarketRecord {
  readonly spec: MarketSpec
  readonly model: Model
  /** Mined positions, by account. */
  readonly mined = new Map<number, Position>()
  /** Every order ever, as the model has it, by id. */
  readonly orders = new Map<string, ModelOrder>()
  /** Nobody has traded before the run. */
  reference: Auction['reference'] = null
  lastBatch = 0
  /** The last row of the log that was added up. */
  written = 0
  readonly #orders = new Map<string, Written>()

  constructor(spec: MarketSpec) {
    this.spec = spec
    this.model = new Model(spec)
  }

  /** What an order holds back, by the model. */
  reservedBy = (order: ModelOrder): bigint => this.model.reserved(order) + order.held

  /** Adds a row of the log up. */
  write(seq: number, row: MarketRow): void {
    this.written = seq
    switch (row.kind) {
      case 'order_placed': {
        const fresh = { reason: null, filled: 0, settling: 0 }
        this.#orders.set(row.order_id, { ...fresh, status: row.status, reserved: BigInt(row.reserved) })
        return
      }
      case 'order_triggered':
        this.#reserve(row).status = 'OPEN'
        return
      case 'reservation_changed':
        this.#reserve(row)
        return
      case 'order_ending':
      case 'order_ended': {
        const written = this.#reserve(row)
        written.status = row.status
        if (row.kind === 'order_ended') written.reason = row.reason
        return
      }
      case 'batch_cleared':
        for (const { order_id, steps } of row.fills) this.#of(order_id).settling += steps
        return
      case 'part_settled':
        this.#settle(row)
        return
      case 'batch_voided':
        for (const { order_id, steps } of row.fills) this.#of(order_id).settling -= steps
        return
      default:
        return
    }
  }

  #of(orderId: string): Written {
    const written = this.#orders.get(orderId)
    if (written === undefined) throw new Error(`the log tells of order ${orderId}, which nobody placed`)
    return written
  }

  #reserve({ order_id, reserved_delta }: { order_id: string; reserved_delta: string }): Written {
    const written = this.#of(order_id)
    written.reserved += BigInt(reserved_delta)
    return written
  }

  #settle({ fills, orders }: PartSettled): void {
    for (const { order_id, steps, held } of fills) {
      const written = this.#of(order_id)
      written.settling -= steps
      written.filled += steps
      written.reserved -= BigInt(held)
    }
    for (const { order_id, status, reason, reserved_delta } of orders) {
      const written = this.#of(order_id)
      written.status = status
      if (status !== 'OPEN' && status !== 'CANCEL_PENDING_FINALIZE') written.reason = reason
      written.reserved += BigInt(reserved_delta)
    }
  }

  /** Where log and model differ, order by order. What has ended is looked at no more: see `endLaw`. */
  differences(): string[] {
    const { model } = this
    const wrong = model.orders.flatMap((order) => {
      const expected = textOf({ ...order, reserved: this.reservedBy(order) })
      const written = textOf(this.#of(order.id))
      return expected === written ? [] : [`order ${order.id} is ${written}; the model: ${expected}`]
    })
    const known = new Set(model.orders.map(({ id }) => id))
    for (const id of this.#orders.keys()) if (!known.has(id)) wrong.push(`order ${id} changes after its end`)
    for (const order of model.orders) if (model.hasEnded(order)) this.#orders.delete(order.id)
    model.forget(model.hasEnded)
    return wrong
  }

  /** The model's auction beside the one that was held; null: one in which nobody met. */
  hold(auction: Omit<Auction, 'batchId' | 'reference'>, cleared: BatchCleared | null): string[] {
    const { model, reference } = this
    const before = model.queue.length
    model.match({ ...auction, reference, batchId: this.lastBatch + 1 })
    const batch = model.queue.length > before ? model.queue.at(-1) : undefined
    const expected = batch === undefined ? 'nobody meets' : `batch ${batch.id} at ${batch.price}`
    const held = cleared === null ? 'nobody meets' : `batch ${cleared.batch_id} at ${cleared.price}`
    if (cleared !== null) {
      this.lastBatch = cleared.batch_id
      this.reference = { price: cleared.price as Ticks, at: cleared.as_of as Millis }
    }
    return expected === held ? [] : [`${held}; the model: ${expected}`]
  }
}
