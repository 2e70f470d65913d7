/** A copy of a market's order book that follows the topic `market.<id>.book`. Pure. */
import type { Side } from '../../domain/orders/order.ts'
import type { Level } from '../responses.ts'
import type { BookData, TopicMessage } from './messages.ts'

type Levels = Map<string, Level>

export class LocalBook {
  readonly marketId: number
  #long: Levels = new Map()
  #short: Levels = new Map()
  #seq = 0
  #batchId: number | null = null

  constructor(marketId: number) {
    this.marketId = marketId
  }

  /** Sequence of the last message. */
  get seq(): number {
    return this.#seq
  }

  /** Last batch that changed the book since the snapshot. */
  get batchId(): number | null {
    return this.#batchId
  }

  /** Applies a message. Messages arrive in topic order; a snapshot replaces everything. */
  apply({ type, seq, batch_id, data }: TopicMessage<BookData>): void {
    if (type === 'snapshot') {
      this.#long = new Map()
      this.#short = new Map()
      this.#batchId = null
    }
    change(this.#long, data.long_levels)
    change(this.#short, data.short_levels)
    this.#seq = seq
    this.#batchId = batch_id ?? this.#batchId
  }

  /** Levels from the best price. */
  levels(side: Side, depth = Number.POSITIVE_INFINITY): readonly Level[] {
    const sign = side === 'LONG' ? -1 : 1
    return [...(side === 'LONG' ? this.#long : this.#short).values()]
      .sort((a, b) => sign * compare(a.price_e18_raw, b.price_e18_raw))
      .slice(0, depth)
  }
}

/**
 * Compares positive integers as text. The book is sorted with every message, and bigints would be allocated per comparison.
 */
const compare = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

function change(levels: Levels, changes: readonly Level[]): void {
  for (const level of changes) {
    if (level.quantity_e18_raw === '0') levels.delete(level.price_e18_raw)
    else levels.set(level.price_e18_raw, level)
  }
}
