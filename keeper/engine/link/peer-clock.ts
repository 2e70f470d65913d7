/**
 * A member's monotonic clock as its client estimates it from the times that the member states. An estimate is never ahead of that clock, and behind it
 * by the delay of the fastest statement.
 */

/** Statements count for one to two such times: two monotonic clocks drift apart by about 6 ms in a minute at most. */
const WINDOW_MS = 60_000

export class PeerClock {
  readonly #monotonic: () => number
  /** Maximum of the member's time minus the client's time, over this window and the previous window. */
  #newest = Number.NEGATIVE_INFINITY
  #earlier = Number.NEGATIVE_INFINITY
  #since: number

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
    this.#since = monotonic()
  }

  /** The member has stated its time. */
  heard(at: number): void {
    const now = this.#monotonic()
    if (now - this.#since >= WINDOW_MS) {
      this.#since = now
      this.#earlier = this.#newest
      this.#newest = Number.NEGATIVE_INFINITY
    }
    this.#newest = Math.max(this.#newest, at - now)
  }

  /** The member's time at a time of the client. Needs a statement before. */
  timeOf(own: number): number {
    return own + Math.max(this.#newest, this.#earlier)
  }
}
