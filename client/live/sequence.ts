/** Position in one topic: decides whether a message continues the received messages. Pure. */
import type { Subscribed, TopicMessage } from './messages.ts'

/** `gap`: messages are missing, so the caller must subscribe again. */
export type Verdict = 'apply' | 'ignore' | 'gap'

export class TopicSequence {
  #epoch: number | null = null
  #seq: number | null = null
  #waitsFor: 'subscribed' | 'snapshot' | null = 'subscribed'

  /** Position of the last applied message, from which the subscription can resume. */
  get position(): string | null {
    return this.#seq === null ? null : `${this.#epoch}:${this.#seq}`
  }

  /** Whether the applied messages are the topic's latest state, as far as received on this connection. */
  get isCurrent(): boolean {
    return this.#waitsFor === null
  }

  /** Ignores messages until the next `subscribed`. */
  restart(): void {
    this.#waitsFor = 'subscribed'
  }

  /** Makes the next subscription start with a snapshot. */
  forget(): void {
    this.#seq = null
    this.restart()
  }

  subscribed({ data: { epoch, resumed } }: Subscribed): Verdict {
    if (resumed && (this.#seq === null || epoch !== this.#epoch)) {
      this.forget()
      return 'gap'
    }
    this.#waitsFor = resumed ? null : 'snapshot'
    return 'apply'
  }

  take({ type, seq, prev_seq, epoch }: TopicMessage): Verdict {
    if (this.#waitsFor === 'subscribed') return 'ignore'
    if (type === 'snapshot') {
      this.#epoch = epoch ?? null
      this.#waitsFor = null
    } else {
      if (this.#waitsFor === 'snapshot') return 'ignore'
      if (prev_seq !== this.#seq || seq <= prev_seq) return 'gap'
    }
    this.#seq = seq
    return 'apply'
  }

  /** Whether the exchange has sent messages that did not arrive. `head`: the topic's seq in a heartbeat. */
  lags(head: number): boolean {
    return this.isCurrent && this.#seq !== null && head > this.#seq
  }
}
