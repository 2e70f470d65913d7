/** Commands and answers of clients, to be compared with the exchange's books later. */
import { ClearbatchError } from '../../client/errors.ts'
import type { PlacedOrder } from '../../client/responses.ts'

/** `unknown`: the client must expect both. */
export type Outcome = 'pending' | 'acknowledged' | 'refused' | 'unknown'

export interface Command {
  readonly kind: 'place' | 'cancel'
  readonly hash: string
  outcome: Outcome
  /** Null unless the command is acknowledged. */
  order: PlacedOrder | null
}

/** A request of a client that waits for its answer. */
interface Wait {
  readonly what: string
  readonly since: number
}

/** Budget of the retries, and bound of each attempt. */
export const HTTP = { budgetMs: 8_000, timeoutMs: 5_000 } as const
/** Both and the time of a busy machine. */
const MOST_WAIT_MS = HTTP.budgetMs + HTTP.timeoutMs + 2_000

export class Commands {
  readonly all: Command[] = []
  readonly #waits = new Set<Wait>()
  readonly #problems: string[] = []

  get acknowledged(): number {
    return this.all.filter(({ outcome }) => outcome === 'acknowledged').length
  }

  /** Null if the command was refused, or its outcome is unknown. */
  async send<Answer extends { readonly order: PlacedOrder }>(
    kind: Command['kind'],
    hash: string,
    work: () => Promise<Answer>,
  ): Promise<Answer | null> {
    const command: Command = { kind, hash, outcome: 'pending', order: null }
    this.all.push(command)
    const answer = await this.wait(`${kind} ${hash}`, work)
    if (answer instanceof ClearbatchError) {
      const isRefused = answer.outcome === 'not_placed' || answer.outcome === 'not_read'
      command.outcome = isRefused ? 'refused' : 'unknown'
      return null
    }
    command.outcome = 'acknowledged'
    command.order = answer.order
    return answer
  }

  /** The answer, or the error that the client was answered with. */
  async wait<Answer>(what: string, work: () => Promise<Answer>): Promise<Answer | ClearbatchError> {
    const wait: Wait = { what, since: performance.now() }
    this.#waits.add(wait)
    try {
      return await work()
    } catch (error) {
      if (error instanceof ClearbatchError) return error
      this.#problems.push(`a client failed in ${what}: ${error}`)
      return new ClearbatchError(String(error), { code: 'CLIENT_FAILED', outcome: 'unknown' })
    } finally {
      this.#waits.delete(wait)
      this.#ended(wait)
    }
  }

  #ended({ what, since }: Wait): void {
    const ms = Math.round(performance.now() - since)
    if (ms > MOST_WAIT_MS) this.#problems.push(`a client waited ${ms} ms for the answer to ${what}`)
  }

  /** Waits that took longer than their bound, and those without an end. */
  problems(): readonly string[] {
    const now = performance.now()
    const open = [...this.#waits].filter(({ since }) => now - since > MOST_WAIT_MS)
    return [...this.#problems, ...open.map(({ what }) => `a client waits without an end for ${what}`)]
  }
}
