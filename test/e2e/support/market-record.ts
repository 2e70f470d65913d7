/** One market of a run: the state of each order by the journal, and by the model. */
import type { BatchCleared, PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { MarketRow, PositionsMoved } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { OrderStatus, StatusReason } from '../../../domain/orders/order.ts'
import { isTerminal } from '../../../domain/orders/order-state.ts'
import type { Position } from '../../../domain/positions/position.ts'
import { ModelLiquidations } from '../../support/model-liquidations.ts'
import { Model } from '../../support/order-model.ts'
import type { Auction, ModelOrder } from '../../support/order-model-terms.ts'
import { OrderMoves } from '../../support/order-moves.ts'
import type { Touch } from './single-actions.ts'

/** The state of an order as the rows of the journal add up. */
interface JournalOrder {
  status: OrderStatus
  reason: StatusReason | null
  filled: number
  settling: number
  /** Reservation of the order, including its settling fills. */
  reserved: bigint
}

const textOf = ({ status, reason, filled, settling, reserved }: JournalOrder): string =>
  `${status} ${reason}, ${filled} filled, ${settling} settling, reserves ${reserved}`

export class MarketRecord {
  readonly spec: MarketSpec
  readonly model: Model
  readonly moves: OrderMoves
  readonly liquidations: ModelLiquidations
  /** Single actions that touch positions, by number in the queue, with the newest state of each. */
  readonly queued = new Map<number, Touch>()
  /** Sizes, and free balance and margin together, that the accounts got outside batches. */
  readonly moved = new Map<number, { readonly size: number; readonly value: bigint }>()
  /** Mined positions, by account. */
  readonly mined = new Map<number, Position>()
  /** Every order of the run, by id, as the model has it. */
  readonly orders = new Map<string, ModelOrder>()
  /** A funding rate has been set: margins accrue funding from then on. */
  hasFunding = false
  lastBatch = 0
  /** The head of the journal that the auction of the last batch read. */
  lastBatchHead = 0
  /** Sequence of the last journal row that was added up. */
  written = 0
  readonly #orders = new Map<string, JournalOrder>()

  constructor(spec: MarketSpec) {
    this.spec = spec
    this.model = new Model(spec)
    this.moves = new OrderMoves(spec, this.model)
    this.liquidations = new ModelLiquidations(spec, this.model, { minesActions: true })
  }

  /** The order's reservation in the model. */
  reservedBy = (order: ModelOrder): bigint => this.model.reserved(order) + order.held

  /** No batch fills orders of the accounts whose positions a queued action may change. */
  touch(touch: Touch): void {
    this.queued.set(touch.queue_no, touch)
    const pending = [...this.queued.values()].filter(({ is_pending }) => is_pending)
    this.model.excluded = new Set(pending.flatMap(({ touches }) => touches))
  }

  /** Adds up one row of the journal. */
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
      case 'positions_moved':
        this.#move(row)
        return
      case 'funding_updated':
        this.hasFunding = true
        return
      case 'batch_voided':
        for (const { order_id, steps } of row.fills) this.#of(order_id).settling -= steps
        return
      default:
        return
    }
  }

  #of(orderId: string): JournalOrder {
    const written = this.#orders.get(orderId)
    if (written === undefined) throw new Error(`the journal has no placement of order ${orderId}`)
    return written
  }

  #reserve({ order_id, reserved_delta }: { order_id: string; reserved_delta: string }): JournalOrder {
    const written = this.#of(order_id)
    written.reserved += BigInt(reserved_delta)
    return written
  }

  /** A row that undoes another one has the other's amounts and the statuses before it. */
  #settle({ rollback, fills, orders }: PartSettled): void {
    const sign = rollback ? -1 : 1
    for (const { order_id, steps, held } of fills) {
      const written = this.#of(order_id)
      written.settling -= sign * steps
      written.filled += sign * steps
      written.reserved -= BigInt(sign) * BigInt(held)
    }
    for (const { order_id, status, reason, reserved_delta } of orders) {
      const written = this.#of(order_id)
      written.status = status
      written.reason = isTerminal(status) ? reason : null
      written.reserved += BigInt(sign) * BigInt(reserved_delta)
    }
  }

  #move(row: PositionsMoved): void {
    for (const { order_id, status, reason } of row.orders ?? []) {
      const written = this.#of(order_id)
      written.status = status
      written.reason = isTerminal(status) ? reason : null
    }
    const add = (account: number, size: number, value: bigint): void => {
      const before = this.moved.get(account) ?? { size: 0, value: 0n }
      const sign = row.rollback ? -1 : 1
      this.moved.set(account, { size: before.size + sign * size, value: before.value + BigInt(sign) * value })
    }
    for (const { user_id, size_delta, folded_margin_delta } of row.positions)
      add(user_id, size_delta, BigInt(folded_margin_delta))
    for (const { user_id, free_delta } of row.balances) add(user_id, 0, BigInt(free_delta))
  }

  /** One line per order whose state differs between journal and model. */
  differences(): string[] {
    const { model } = this
    const problems = model.orders.flatMap((order) => {
      const expected = textOf({ ...order, reserved: this.reservedBy(order) })
      const written = textOf(this.#of(order.id))
      return expected === written ? [] : [`order ${order.id} is ${written}; the model: ${expected}`]
    })
    const known = new Set(model.orders.map(({ id }) => id))
    for (const id of this.#orders.keys())
      if (!known.has(id)) problems.push(`order ${id} changes after its end`)
    return problems
  }

  /** Orders that have ended must not change from now on; `checkEnd` checks them. */
  forgetEnded(): void {
    const { model } = this
    for (const order of model.orders) if (model.hasEnded(order)) this.#orders.delete(order.id)
    model.forget(model.hasEnded)
    model.mined.splice(0)
  }

  /** Runs the auction in the model and compares it with the keeper's. `cleared` is null if the keeper's matched nothing. */
  compareAuction(auction: Omit<Auction, 'batchId'>, cleared: BatchCleared | null): string[] {
    const { model } = this
    const before = model.queue.length
    model.match({ ...auction, batchId: this.lastBatch + 1 })
    const batch = model.queue.length > before ? model.queue.at(-1) : undefined
    const expected = batch === undefined ? 'no match' : `batch ${batch.id} at ${batch.price}`
    const actual = cleared === null ? 'no match' : `batch ${cleared.batch_id} at ${cleared.price}`
    if (cleared !== null) {
      this.lastBatch = cleared.batch_id
      this.lastBatchHead = this.written
    }
    return expected === actual ? [] : [`${actual}; the model: ${expected}`]
  }
}
