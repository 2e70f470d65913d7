/** Parsed rows of the ring that the follower has already released, for late messages and resuming readers. */
import type { FeedRow } from './feed-row.ts'

/** Time for which rows stay parsed, so that readers that resume together share them. */
export const PARSED_MS = 500

export class ParsedRows {
  readonly #rows = new Set<FeedRow>()

  /** Keeps rows parsed for a short time only, because the parsed form takes several times the memory of the text. */
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
