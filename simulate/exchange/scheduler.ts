/** Virtual time: events run one after the other, each with all the promises that it resolves, in the order of their times. */

interface Event {
  readonly at: number
  /** Ties are decided by the order of scheduling. */
  readonly order: number
  readonly run: () => void
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

export class Scheduler {
  now = 0
  ran = 0
  #order = 0
  /** A binary heap, earliest first. */
  readonly #events: Event[] = []

  after(ms: number, run: () => void): void {
    this.#push({ at: this.now + Math.max(0, ms), order: this.#order++, run })
  }

  /** Runs events until there is none before `until`, or `most` have run in all. */
  async runUntil(until: number, most = Number.POSITIVE_INFINITY): Promise<void> {
    while (this.ran < most) {
      const next = this.#events[0]
      if (next === undefined || next.at > until) break
      this.#pop()
      this.now = next.at
      this.ran += 1
      next.run()
      // Promises of this event and of all that they resolve.
      await new Promise(setImmediate)
    }
    if (this.ran < most) this.now = Math.max(this.now, until)
  }

  #push(event: Event): void {
    const events = this.#events
    let at = events.length
    events.push(event)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (isBefore(events[parent] as Event, event)) break
      events[at] = events[parent] as Event
      at = parent
    }
    events[at] = event
  }

  #pop(): void {
    const events = this.#events
    const last = events.pop() as Event
    if (events.length === 0) return
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      let child = left
      if (right < events.length && isBefore(events[right] as Event, events[left] as Event)) child = right
      if (child >= events.length || isBefore(last, events[child] as Event)) break
      events[at] = events[child] as Event
      at = child
    }
    events[at] = last
  }
}
