/**
 * A copy of the account that follows the topic `user`: live orders, fills, positions, balance, transactions,
 * adjustments. Pure.
 * The client's own writes appear at once, before the feed reaches them.
 */
import type { AdjustmentAttempt } from '../adjustments.ts'
import type { Bookmark, Fill, PlacedOrder, Transaction } from '../responses.ts'
import type { TopicMessage, UserBalance, UserData, UserPosition } from './messages.ts'

/** Answer to a placement or a cancel of this client. */
export interface OwnWrite {
  readonly order: PlacedOrder
  readonly read_after: Bookmark
}

const ENDED: readonly string[] = ['FILLED', 'CANCELLED', 'EXPIRED']

/** Maximum stored fills, transactions and adjustments; the oldest are evicted. */
const MOST = 10_000

export class LocalAccount {
  readonly #orders = new Map<string, PlacedOrder>()
  readonly #fills = new Map<string, Fill>()
  readonly #positions = new Map<number, UserPosition>()
  readonly #transactions = new Map<string, Transaction>()
  readonly #adjustments = new Map<string, AdjustmentAttempt>()
  #balance: UserBalance | null = null
  /** The client's writes that the feed has not reached. */
  readonly #writes = new Map<string, OwnWrite>()
  /** Sequence that the feed has reached since the snapshot, by shard. */
  readonly #reached = new Map<string, bigint>()

  /** Null before the first snapshot. */
  get balance(): UserBalance | null {
    return this.#balance
  }

  get orders(): readonly PlacedOrder[] {
    const merged = new Map(this.#orders)
    for (const { order } of this.#writes.values()) {
      if (isEnded(order)) merged.delete(order.order_id)
      else merged.set(order.order_id, order)
    }
    return [...merged.values()]
  }

  /** The snapshot's newest fills plus all later fills. */
  get fills(): readonly Fill[] {
    return [...this.#fills.values()]
  }

  get positions(): readonly UserPosition[] {
    return [...this.#positions.values()]
  }

  get transactions(): readonly Transaction[] {
    return [...this.#transactions.values()]
  }

  /** The snapshot's newest attempts plus all later attempts, each with its latest status. */
  get adjustments(): readonly AdjustmentAttempt[] {
    return [...this.#adjustments.values()]
  }

  /** The client's writes that the feed has not reached. */
  get writes(): readonly OwnWrite[] {
    return [...this.#writes.values()]
  }

  /** Shows a write of this client, unless the feed has reached it. */
  note({ order, read_after }: OwnWrite): void {
    if (!this.#hasReached(read_after) && !this.#isOutdated(order))
      this.#writes.set(order.order_id, { order, read_after })
  }

  /**
   * Stores the order from a read after the write. If the order has ended, the feed will not mention it again.
   */
  resolve({ order: { order_id: id } }: OwnWrite, order: PlacedOrder): void {
    if (!isEnded(order)) return
    this.#writes.delete(id)
    this.#orders.delete(id)
  }

  /**
   * Applies a message. Messages arrive in topic order; a snapshot replaces everything except the client's own writes.
   */
  apply({ type, read_after, data }: TopicMessage<UserData>): void {
    if (type === 'snapshot') this.#clear()
    for (const { market_id, batch_id, part } of data.removed_parts ?? [])
      for (const [id, fill] of this.#fills)
        if (fill.market_id === market_id && fill.batch_id === batch_id && fill.part === part)
          this.#fills.delete(id)
    for (const id of data.removed_transactions ?? []) this.#transactions.delete(id)
    for (const order of data.orders ?? []) {
      if (isEnded(order)) this.#orders.delete(order.order_id)
      else this.#orders.set(order.order_id, order)
    }
    // A snapshot is newest first.
    const oldestFirst = <Item>(items: readonly Item[] = []) =>
      type === 'snapshot' ? items.toReversed() : items
    for (const fill of oldestFirst(data.fills)) this.#fills.set(fill.fill_id, fill)
    for (const each of oldestFirst(data.transactions)) this.#transactions.set(each.id, each)
    for (const each of oldestFirst(data.adjustments)) this.#adjustments.set(each.adjustment_id, each)
    for (const position of data.positions ?? []) {
      const isFlat = position.size_e18_raw === '0' && position.pending_size_e18_raw === '0'
      if (isFlat) this.#positions.delete(position.market_id)
      else this.#positions.set(position.market_id, position)
    }
    this.#balance = data.balance ?? this.#balance
    evict(this.#fills)
    evict(this.#transactions)
    evict(this.#adjustments)
    if (read_after !== undefined) this.#reach(read_after)
    for (const [id, { order }] of this.#writes) if (this.#isOutdated(order)) this.#writes.delete(id)
  }

  #clear(): void {
    for (const items of [this.#orders, this.#fills, this.#positions]) items.clear()
    for (const items of [this.#transactions, this.#adjustments]) items.clear()
    this.#reached.clear()
  }

  #reach({ shard_id, shard_seq }: Bookmark): void {
    this.#reached.set(shard_id, BigInt(shard_seq))
    for (const [id, write] of this.#writes) if (this.#hasReached(write.read_after)) this.#writes.delete(id)
  }

  #hasReached({ shard_id, shard_seq }: Bookmark): boolean {
    return (this.#reached.get(shard_id) ?? -1n) >= BigInt(shard_seq)
  }

  /** Whether the feed shows a later state of the order. */
  #isOutdated({ order_id, updated_at }: PlacedOrder): boolean {
    const known = this.#orders.get(order_id)
    return known !== undefined && known.updated_at > updated_at
  }
}

const isEnded = ({ status }: PlacedOrder): boolean => ENDED.includes(status)

function evict(items: Map<string, unknown>): void {
  for (const id of items.keys()) {
    if (items.size <= MOST) return
    items.delete(id)
  }
}
