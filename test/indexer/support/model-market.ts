/**
 * Reference model of one market: it writes journal rows in every valid order, and keeps the expected state in plain maps. The read
 * model projected from the rows must equal that state.
 */
import { randomBytes } from 'node:crypto'
import type {
  BatchCleared,
  FillSettled,
  MatchedFill,
  PartSettled,
} from '../../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import type { Side, StatusReason } from '../../../domain/orders/order.ts'
import type { BatchStatus } from '../../../domain/settlement/settlement.ts'
import { heldFor, type ModelOrder, remainingOf, reservationOf } from './model-order.ts'
import { PER_STEP, positionChanges, settlementOf } from './model-settlement.ts'

interface Part {
  readonly batch: BatchCleared
  readonly part: number
  readonly fills: readonly MatchedFill[]
  submitted: boolean
  settled: PartSettled | null
}

export interface ModelBalance {
  free: bigint
  reserved: bigint
  pending: bigint
}

export const ACCOUNTS = 4

export class ModelMarket {
  readonly rows: JournalRow[] = []
  readonly orders = new Map<string, ModelOrder>()
  readonly positions = new Map<number, { size: number; entry: bigint; pending: number; leverage: number }>()
  readonly balances: Map<number, ModelBalance>
  readonly marketId: number
  /** The protection price under which each fill was matched, by fill id. */
  readonly protections = new Map<string, number | null>()
  readonly batches = new Map<number, BatchStatus>()
  /** The events of all orders, as `<order_id> <kind>`. */
  events: { readonly event: string; readonly part: Part | null }[] = []
  #parts: Part[] = []
  readonly #mined = new Map<number, number>()
  #batches = 0
  #clock = 1_000

  constructor(marketId: number, balances: Map<number, ModelBalance>) {
    this.marketId = marketId
    this.balances = balances
    this.rows.push({ kind: 'market_listed', spec: { symbol: `M${marketId}`, kind: 'perpetual' } as never })
  }

  get #now(): number {
    this.#clock += 17_777
    return this.#clock
  }

  open(): ModelOrder[] {
    const orders = [...this.orders.values()]
    return orders.filter((o) => o.status === 'OPEN' && o.closing === null && remainingOf(o) > 0)
  }

  /** An account's mined and pending position. */
  matchedOf(userId: number): number {
    const { size = 0, pending = 0 } = this.positions.get(userId) ?? {}
    return size + pending
  }

  /** `openable` of the steps are covered by the reservation; none of a reduce-only order. */
  place(userId: number, side: Side, price: number, quantity: number, openable: number | 'reduce-only'): void {
    const reduce_only = openable === 'reduce-only'
    const covered = reduce_only ? 0 : openable
    const seq = this.rows.length + 1
    const order_id = `${this.marketId}-${seq}`
    const reserved = reservationOf(covered)
    this.orders.set(order_id, {
      ...{ order_id, seq, user_id: userId, side, price, quantity, reserved, reduce_only, openable: covered },
      ...{ status: 'OPEN', reason: null, closing: null, filled: 0, settling: 0, held: 0n, protection: null },
    })
    this.#balance(userId).reserved += reserved
    this.events.push({ event: `${order_id} CREATED`, part: null })
    this.rows.push({
      kind: 'order_placed',
      ...{ order_id, user_id: userId, maker: `0x${userId}`, signer: `0x${userId}`, salt: seq, side, price },
      hash: `0x${randomBytes(32).toString('hex')}`,
      ...{ type: price === 0 ? 'MARKET' : 'LIMIT', quantity, trigger: 0, leverage: 2, reduce_only },
      ...{ expiration: 0, alive_until: 0, status: 'OPEN', accepted_at: this.#now },
      ...{ openable: covered, reserved_price: price, reserved: reserved.toString() },
    })
  }

  cancel(order: ModelOrder): void {
    if (order.settling === 0) this.#end(order, 'CANCELLED', 'USER_CANCELLED')
    else {
      const released = reservationOf(order.openable)
      order.openable = 0
      order.status = 'CANCEL_PENDING_FINALIZE'
      order.reason = 'USER_CANCELLED'
      order.closing = 'USER_CANCELLED'
      this.#release(order, released)
      const { order_id, user_id } = order
      const change = { status: order.status, reason: order.reason, note: 'bye', at: this.#now }
      this.rows.push({ kind: 'order_ending', order_id, user_id, ...change, reserved_delta: `${-released}` })
    }
  }

  /** Matches the pairs of open orders; every second pair goes into a second part. */
  clear(pairs: readonly (readonly [ModelOrder, ModelOrder])[], price: number): void {
    if (pairs.length === 0) return
    const batch_id = ++this.#batches
    const market = pairs.flat().filter((order) => order.price === 0)
    this.#protect(market, price + (batch_id % 3))
    const fills = pairs.flatMap(([buy, sell], at) => {
      const steps = Math.min(remainingOf(buy), remainingOf(sell))
      return [buy, sell].map((order) => this.#match(order, batch_id, (at % 2) + 1, steps))
    })
    const closing = market.filter((order) => remainingOf(order) > 0)
    for (const order of closing) order.closing = 'MARKET_REMAINDER'
    const parts = pairs.length > 1 ? 2 : 1
    const batch: BatchCleared = {
      kind: 'batch_cleared',
      ...{ batch_id, as_of: this.#now, oracle_price: '100', oracle_at: 1, lo: 80, hi: 120, price },
      ...{ volume: 1, demand: 1, supply: 1, rule: 'volume', rule_version: 2, parts, fills },
      closing: closing.map(({ order_id }) => ({ order_id, reason: 'MARKET_REMAINDER' })),
    }
    this.rows.push(batch)
    this.batches.set(batch_id, 'SETTLING')
    for (let part = 1; part <= parts; part++) {
      const own = fills.filter((fill) => fill.part === part)
      this.#parts.push({ batch, part, fills: own, submitted: false, settled: null })
    }
  }

  submit(): void {
    const part = this.#parts.find(({ submitted }) => !submitted)
    if (part === undefined) return
    part.submitted = true
    const { batch_id } = part.batch
    const tx_hash = `0x${batch_id}-${part.part}`
    this.rows.push({
      kind: 'part_submitted',
      ...{ batch_id, part: part.part, action_id: 1, tx_hash, at: this.#now },
    })
  }

  settle(): void {
    const part = this.#parts.find(({ settled }) => settled === null)
    if (part?.submitted !== true) return
    const fills = part.fills.map((fill) => settlementOf(fill))
    const orders = part.fills.map((fill) => this.#mine(this.#order(fill.order_id), fill))
    part.settled = this.#settled(part.batch, part.part, fills, orders)
    this.rows.push(part.settled)
    this.#count(part.batch, 1)
    for (const { order_id, status } of orders) {
      const kind = status === 'FILLED' ? status : 'PARTIALLY_FILLED'
      this.events.push({ event: `${order_id} ${kind}`, part })
      if (status === 'CANCELLED') this.events.push({ event: `${order_id} ${status}`, part })
    }
    this.#move(part.settled, 1)
  }

  confirm(): void {
    const part = this.#parts.find(({ settled }) => settled !== null)
    if (part === undefined) return
    this.#parts = this.#parts.filter((other) => other !== part)
    const { batch_id } = part.batch
    this.rows.push({ kind: 'part_confirmed', batch_id, part: part.part, block: 1, at: this.#now })
  }

  /** Rolls back the newest mined part. */
  rollback(): void {
    const part = this.#parts.findLast(({ settled }) => settled !== null)
    if (part === undefined || part.settled === null) return
    const settled = part.settled
    const orders = settled.orders.map((was) => this.#unmine(was, part))
    this.rows.push({ ...settled, rollback: true, orders })
    this.#count(part.batch, -1)
    this.#move(settled, -1)
    const waiting = orders.filter(({ status }) => status === 'OPEN' || status === 'CANCEL_PENDING_FINALIZE')
    const ends = waiting.flatMap(({ order_id }) => [`${order_id} CANCELLED`, `${order_id} EXPIRED`])
    this.events = this.events.filter(({ event, part: of }) => of !== part && !ends.includes(event))
    part.settled = null
  }

  /** Voids all parts that are not mined; market orders are open again. */
  voidBatches(): void {
    const failed = this.#parts.filter(({ settled }) => settled === null)
    this.#parts = this.#parts.filter(({ settled }) => settled !== null)
    for (const [batch, parts] of Map.groupBy(failed, (part) => part.batch)) {
      const fills = parts.flatMap((part) => part.fills)
      for (const fill of fills) this.#unmatch(this.#order(fill.order_id), fill)
      const touched = new Set(fills.map(({ order_id }) => this.#order(order_id)))
      const reopened = [...touched].filter(
        (order) => order.closing === 'MARKET_REMAINDER' && order.settling === 0,
      )
      for (const order of reopened) {
        order.closing = null
        order.protection = null
      }
      const from_part = Math.min(...parts.map(({ part }) => part))
      this.rows.push({
        kind: 'batch_voided',
        ...{ batch_id: batch.batch_id, from_part, why: 'revert', at: this.#now, fills },
        reopened: reopened.map(({ order_id }) => order_id),
      })
      this.batches.set(batch.batch_id, 'VOIDED')
      for (const order of touched) {
        if (order.closing !== null && order.settling === 0) this.#end(order, 'CANCELLED', order.closing)
        else if (order.closing === null) this.#returnHeld(order, fills)
      }
    }
  }

  /** A mined part of two accounts that was not matched here, for orders that do not exist here. */
  settleUnmatched(long: number, short: number, steps: number): void {
    const batch_id = 1_000_000 + this.rows.length
    const side = (user: number, at: number): FillSettled => ({
      ...settlementOf({ user_id: user, side: at === 0 ? 'LONG' : 'SHORT', steps, taker_steps: 0, held: '0' }),
      fill_id: `${this.marketId}-${batch_id}-1-c${at}`,
      order_id: `${this.marketId}-0x${user}-9`,
      matched: false,
    })
    const row = this.#settled({ batch_id, price: 100, parts: 1 }, 1, [side(long, 0), side(short, 1)], [])
    this.rows.push(row)
    this.#move(row, 1)
  }

  updatePrices(price: number): void {
    const prices = { oracle_price: `${price}`, oracle_at: this.#now, mark_price: `${price + 1}` }
    this.rows.push({ kind: 'prices_updated', ...prices, at: this.#now })
  }

  reserve(order: ModelOrder, openable: number): void {
    if (order.reduce_only || openable > remainingOf(order)) return
    const delta = reservationOf(openable - order.openable)
    this.#release(order, -delta)
    this.#reserved(order, openable, delta)
  }

  /** What was held for voided fills returns to the reservation. */
  #returnHeld(order: ModelOrder, fills: readonly MatchedFill[]): void {
    const own = fills.filter(({ order_id }) => order_id === order.order_id)
    const returned = own.reduce((sum, { held }) => sum + BigInt(held), 0n)
    if (returned > 0n) this.#reserved(order, order.openable + Number(returned / PER_STEP.reserved), 0n)
  }

  #reserved(order: ModelOrder, openable: number, delta: bigint): void {
    order.openable = openable
    const { order_id, user_id } = order
    const reserved = { openable, reserved_price: 1, reserved_delta: `${delta}` }
    this.rows.push({ kind: 'reservation_changed', order_id, user_id, ...reserved })
  }

  /** A batch is SETTLED while all of its parts are mined, unless a part was voided. */
  #count({ batch_id, parts }: BatchCleared, mined: 1 | -1): void {
    const count = (this.#mined.get(batch_id) ?? 0) + mined
    this.#mined.set(batch_id, count)
    if (this.batches.get(batch_id) !== 'VOIDED')
      this.batches.set(batch_id, count === parts ? 'SETTLED' : 'SETTLING')
  }

  #protect(orders: readonly ModelOrder[], price: number): void {
    if (orders.length === 0) return
    for (const order of orders) order.protection = price
    this.rows.push({
      kind: 'orders_protected',
      ...{ as_of: this.#now, rule_version: 2, oracle_price: '100', oracle_at: 1, standing_seq: 1 },
      price_protection: '1',
      orders: orders.map(({ order_id, user_id }) => ({
        ...{ order_id, user_id, best: null, level: null, reference: '100', price },
      })),
    })
  }

  #balance(userId: number): ModelBalance {
    return this.balances.get(userId) as ModelBalance
  }

  #order(orderId: string): ModelOrder {
    return this.orders.get(orderId) as ModelOrder
  }

  #position(userId: number) {
    const position = this.positions.get(userId) ?? { size: 0, entry: 0n, pending: 0, leverage: 0 }
    this.positions.set(userId, position)
    return position
  }

  #release(order: ModelOrder, amount: bigint): void {
    order.reserved -= amount
    this.#balance(order.user_id).reserved -= amount
  }

  #end(order: ModelOrder, status: 'CANCELLED' | 'EXPIRED', reason: StatusReason): void {
    const released = order.reserved
    this.#release(order, released)
    order.openable = 0
    order.status = status
    order.reason = reason
    const { order_id, user_id } = order
    this.events.push({ event: `${order_id} ${status}`, part: null })
    const change = { status, reason, note: null, reserved_delta: `${-released}`, at: this.#now }
    this.rows.push({ kind: 'order_ended', order_id, user_id, ...change })
  }

  #match(order: ModelOrder, batchId: number, part: number, steps: number): MatchedFill {
    const held = heldFor(order, steps, batchId % 2 === 0)
    order.settling += steps
    order.openable -= Number(held / PER_STEP.reserved)
    order.held += held
    const { order_id, user_id, side } = order
    this.#position(user_id).pending += side === 'LONG' ? steps : -steps
    const fill_id = `${this.marketId}-${batchId}-${part}-${order.seq}`
    this.protections.set(fill_id, order.protection)
    return { fill_id, order_id, user_id, part, side, steps, taker_steps: 0, held: `${held}` }
  }

  #unmatch(order: ModelOrder, fill: MatchedFill): void {
    order.settling -= fill.steps
    order.held -= BigInt(fill.held)
    this.#position(order.user_id).pending -= fill.side === 'LONG' ? fill.steps : -fill.steps
  }

  #mine(order: ModelOrder, fill: MatchedFill) {
    order.settling -= fill.steps
    order.filled += fill.steps
    order.held -= BigInt(fill.held)
    this.#release(order, BigInt(fill.held))
    let released = 0n
    if (order.filled === order.quantity) [order.status, order.reason] = ['FILLED', 'FILLED']
    else if (order.closing !== null && order.settling === 0) {
      ;[order.status, order.reason] = ['CANCELLED', order.closing]
      released = order.reserved
      this.#release(order, released)
    }
    const { order_id, user_id, status, reason } = order
    if (reason !== null && status !== 'CANCEL_PENDING_FINALIZE') order.openable = 0
    return { order_id, user_id, status, reason, reserved_delta: `${-released}` }
  }

  #unmine(was: PartSettled['orders'][number], { fills }: Part) {
    const order = this.#order(was.order_id)
    const fill = fills.find(({ order_id }) => order_id === was.order_id) as MatchedFill
    order.settling += fill.steps
    order.filled -= fill.steps
    order.held += BigInt(fill.held)
    this.#release(order, -BigInt(fill.held) + BigInt(was.reserved_delta))
    if (order.status === 'CANCELLED') order.closing = order.reason
    const pending = order.closing !== null && order.closing !== 'MARKET_REMAINDER'
    order.status = pending ? 'CANCEL_PENDING_FINALIZE' : 'OPEN'
    order.reason = pending ? order.closing : null
    return { ...was, status: order.status, reason: order.reason }
  }

  #settled(
    { batch_id, price, parts }: Pick<BatchCleared, 'batch_id' | 'price' | 'parts'>,
    part: number,
    fills: readonly FillSettled[],
    orders: PartSettled['orders'],
  ): PartSettled {
    const positions = positionChanges(price, fills, (userId) => this.#position(userId).leverage)
    return {
      kind: 'part_settled',
      ...{
        rollback: false,
        batch_id,
        part,
        parts,
        action_id: 1,
        price,
        block: 5,
        log_index: 0,
        at: this.#now,
      },
      ...{ tx_hash: `0x${batch_id}-${part}`, fills, positions, orders },
      position_closed: [],
    }
  }

  #move(row: PartSettled, sign: 1 | -1): void {
    for (const fill of row.fills) {
      const balance = this.#balance(fill.user_id)
      balance.free += BigInt(sign) * (BigInt(fill.free_delta) + BigInt(fill.from_pending))
      balance.pending -= BigInt(sign) * BigInt(fill.from_pending)
      const size = sign * (fill.side === 'LONG' ? fill.steps : -fill.steps)
      if (fill.matched) this.#position(fill.user_id).pending -= size
    }
    for (const change of row.positions) {
      const position = this.#position(change.user_id)
      position.size += sign * change.size_delta
      position.entry += BigInt(sign) * BigInt(change.entry_notional_delta)
      position.leverage = sign === 1 ? change.leverage_after : change.leverage_before
    }
  }
}
