/**
 * Since when the database has been reachable, as the statements of the dead-man switches and the readings of the database's clock saw it. The
 * readings wait for no lock: a pass that waits for one is no outage. The switch of a connection is renewed in the database, so that its time
 * runs out in an outage although the connection lives.
 */
import type { Millis } from '../../domain/units.ts'

/**
 * Longest pause between two statements that is no outage. With a pause of this length a switch of the shortest grace, 5 s, is still renewed
 * in time.
 */
const MOST_PAUSE_MS = 3_000

export class Reachability {
  #since = Number.NEGATIVE_INFINITY
  #last = Number.NEGATIVE_INFINITY

  /** Before a statement at `now`. */
  since(now: Millis): Millis {
    return now - this.#last > MOST_PAUSE_MS ? now : (this.#since as Millis)
  }

  /** A statement has succeeded. */
  reached(now: Millis): void {
    this.#since = this.since(now)
    this.#last = now
  }
}
