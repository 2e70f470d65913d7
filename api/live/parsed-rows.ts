/** Rows of the ring that were parsed after the follower had released them, for messages that are sent late and for readers that resume. */
import type { FeedRow } from './feed-row.ts'

/** How long the rows stay parsed: readers that resume at the same time share them. */
export const PARSED_MS = 500

export class ParsedRows {
  readonly #rows = new Set<FeedRow>()

  /** The parsed form takes several times the memory of the text, so that it is released soon. */
  add(rows: readonly FeedRow[]): void {
    if (rows.length === 0) return
    if (this.#rows.size === 0) setTimeout(() => this.#release(), PARSED_MS).unref()
    for (const row of rows) this.#rows.add(row)
  }

  #release(): void {
    for (const row of this.#rows) row.release()
    this.#rows.clear()
  }
}
