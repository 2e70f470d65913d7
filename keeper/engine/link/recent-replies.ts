/**
 * Recent replies by client process and command number, so that a reconnected client's open commands are not executed
 * twice. After a takeover clients report them as unknown.
 */
import type { Reply } from '../owner.ts'

export class RecentReplies {
  readonly #most: number
  /** Insertion order is the order of arrival. */
  readonly #replies = new Map<string, Promise<Reply<unknown>>>()

  /** `most`: more than all clients together can have open. */
  constructor(most: number) {
    this.#most = most
  }

  get(process: string, number: number): Promise<Reply<unknown>> | undefined {
    return this.#replies.get(keyOf(process, number))
  }

  remember(process: string, number: number, reply: Promise<Reply<unknown>>): void {
    this.#replies.set(keyOf(process, number), reply)
    for (const key of this.#replies.keys()) {
      if (this.#replies.size <= this.#most) return
      this.#replies.delete(key)
    }
  }
}

const keyOf = (process: string, number: number): string => `${process}/${number}`
