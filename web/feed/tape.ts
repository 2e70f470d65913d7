/** The newest public fills of a market, with the settlement stage of each. Pure. */
import type { TopicMessage, TradesData } from '../../client/live/messages.ts'
import type { PublicFill, PublicPart } from '../../client/responses.ts'

const MOST_PARTS = 60

type Part = { readonly common: Omit<PublicPart, 'fills'>; readonly fills: ReadonlyMap<string, PublicFill> }

export class Tape {
  #parts = new Map<string, Part>()

  apply({ type, data }: TopicMessage<TradesData>): void {
    if (type === 'snapshot') this.#parts = new Map()
    for (const { batch_id, part } of data.removed) this.#parts.delete(`${batch_id}-${part}`)
    const { market_id, symbol } = data
    for (const { fills, ...common } of type === 'snapshot' ? data.parts.toReversed() : data.parts) {
      const key = `${common.batch_id}-${common.part}`
      const before = this.#parts.get(key)
      if (fills === undefined && before === undefined) continue
      const merged = new Map<string, PublicFill>()
      for (const fill of before?.fills.values() ?? []) merged.set(fill.fill_id, { ...fill, ...common })
      for (const fill of fills ?? []) merged.set(fill.fill_id, { ...fill, market_id, symbol, ...common })
      this.#parts.set(key, { common, fills: merged })
    }
    for (const key of this.#parts.keys()) {
      if (this.#parts.size <= MOST_PARTS) break
      this.#parts.delete(key)
    }
  }

  /** One row per part and side that took: newest first. A batch has one price, so its fills differ by side only. */
  get fills(): readonly PublicFill[] {
    return [...this.#parts.values()].flatMap(({ fills }) => [...fills.values()]).reverse()
  }
}
