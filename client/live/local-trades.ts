/** A copy of a market's public fills that follows the topic `market.<id>.trades`: the newest of the snapshot, and all since then. Pure. */
import type { PublicFill } from '../responses.ts'
import type { TopicMessage, TradesData } from './messages.ts'

/** Parts that are kept, oldest evicted first. */
const MOST_PARTS = 10_000

type Part = ReadonlyMap<string, PublicFill>

const keyOf = ({ batch_id, part }: { readonly batch_id: number; readonly part: number }): string =>
  `${batch_id}-${part}`

export class LocalTrades {
  readonly marketId: number
  readonly #parts = new Map<string, Part>()

  constructor(marketId: number) {
    this.marketId = marketId
  }

  /** Oldest parts first. Of the oldest part of the snapshot, fills may be missing. */
  get fills(): readonly PublicFill[] {
    return [...this.#parts.values()].flatMap((part) => [...part.values()])
  }

  /** Messages come in the order of the topic; a snapshot replaces everything. */
  apply({ type, data }: TopicMessage<TradesData>): void {
    if (type === 'snapshot') this.#parts.clear()
    for (const removed of data.removed) this.#parts.delete(keyOf(removed))
    const { market_id, symbol } = data
    // A snapshot is newest first.
    for (const { fills, ...common } of type === 'snapshot' ? data.parts.toReversed() : data.parts) {
      const before = this.#parts.get(keyOf(common))
      // A change of all fills of a part that is older than the snapshot.
      if (fills === undefined && before === undefined) continue
      const changed = (fills ?? [...(before as Part).values()]).map(
        (fill): PublicFill => ({
          ...fill,
          ...{ market_id, symbol },
          ...common,
        }),
      )
      const named = changed.map((fill) => [fill.fill_id, fill] as const)
      this.#parts.set(keyOf(common), new Map([...(before ?? []), ...named]))
    }
    for (const oldest of this.#parts.keys()) {
      if (this.#parts.size <= MOST_PARTS) break
      this.#parts.delete(oldest)
    }
  }
}
