/**
 * A copy of a market's public fills that follows the topic `market.<id>.trades`: the snapshot's newest fills
 * plus all later fills. Pure.
 */
import type { PublicFill } from '../responses.ts'
import { SNAPSHOT_FILLS, type TopicMessage, type TradesData } from './messages.ts'

/** Maximum stored fills; the oldest parts are evicted. */
const MOST_FILLS = 10_000

type Part = ReadonlyMap<string, PublicFill>

const keyOf = ({ batch_id, part }: { readonly batch_id: number; readonly part: number }): string =>
  `${batch_id}-${part}`

export class LocalTrades {
  readonly marketId: number
  readonly #parts = new Map<string, Part>()
  #count = 0
  #from = ''

  constructor(marketId: number) {
    this.marketId = marketId
  }

  /** `created_at` from which every later fill is stored; empty if all fills of the market are stored. */
  get from(): string {
    return this.#from
  }

  /** Stored fills, oldest parts first. */
  get fills(): readonly PublicFill[] {
    return [...this.#parts.values()].flatMap((part) => [...part.values()])
  }

  /** Applies a message. Messages arrive in topic order; a snapshot replaces everything. */
  apply({ type, data }: TopicMessage<TradesData>): void {
    if (type === 'snapshot') this.#clear(data)
    for (const removed of data.removed) this.#set(keyOf(removed), null)
    const { market_id, symbol } = data
    // A snapshot is newest first.
    for (const { fills, ...common } of type === 'snapshot' ? data.parts.toReversed() : data.parts) {
      const before = this.#parts.get(keyOf(common))
      // The message changes all fills of a part that is older than the snapshot.
      if (fills === undefined && before === undefined) continue
      const changed = (fills ?? [...(before as Part).values()]).map(
        (fill): PublicFill => ({
          ...fill,
          ...{ market_id, symbol },
          ...common,
        }),
      )
      const named = changed.map((fill) => [fill.fill_id, fill] as const)
      this.#set(keyOf(common), new Map([...(before ?? []), ...named]))
    }
    this.#evict()
  }

  /** A full snapshot may end within a part; older fills of that part are then missing. */
  #clear({ parts }: TradesData): void {
    for (const key of this.#parts.keys()) this.#set(key, null)
    const fills = parts.reduce((sum, part) => sum + (part.fills?.length ?? 0), 0)
    this.#from = fills < SNAPSHOT_FILLS ? '' : (parts.map(({ created_at }) => created_at).sort()[0] ?? '')
  }

  #evict(): void {
    for (const [key, part] of this.#parts) {
      if (this.#count <= MOST_FILLS) return
      for (const { created_at } of part.values()) if (created_at > this.#from) this.#from = created_at
      this.#set(key, null)
    }
  }

  #set(key: string, part: Part | null): void {
    this.#count += (part?.size ?? 0) - (this.#parts.get(key)?.size ?? 0)
    if (part === null) this.#parts.delete(key)
    else this.#parts.set(key, part)
  }
}
