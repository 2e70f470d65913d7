/**
 * Outcome of a command over all attempts. A later error never denies a possible execution:
 * an attempt refused by a rate limit says nothing about earlier attempts.
 */
import { ClearbatchError, type PlacementOutcome } from './errors.ts'

const CERTAINTY: Readonly<Record<PlacementOutcome, number>> = {
  not_read: 0,
  not_placed: 0,
  unknown: 1,
  placed: 2,
}

/** The outcome with the strongest evidence of execution, for example of a batch's items. */
export const mostCertain = (outcomes: readonly PlacementOutcome[]): PlacementOutcome =>
  outcomes.reduce((most, next) => (CERTAINTY[next] > CERTAINTY[most] ? next : most))

/** The attempt's error, with the command's outcome over all attempts. */
export function withEarlier(error: ClearbatchError, earlier: PlacementOutcome): ClearbatchError {
  const { outcome } = error
  if (outcome === null || CERTAINTY[outcome] >= CERTAINTY[earlier]) return error
  const known = new ClearbatchError(error.message, { ...error, outcome: earlier })
  known.cause = error.cause ?? error
  return known
}

/** Maximum remembered commands; the oldest are dropped. */
const SIZE = 10_000

/**
 * Commands, by identity, that were or may have been placed. Commands without an identity are not remembered.
 */
export class OutcomeMemory {
  readonly #outcomes = new Map<string, PlacementOutcome>()

  earlier(identity: string | undefined): PlacementOutcome {
    return (identity !== undefined && this.#outcomes.get(identity)) || 'not_read'
  }

  note(identity: string | undefined, outcome: PlacementOutcome | null): void {
    if (identity === undefined || outcome === null || CERTAINTY[outcome] === 0) return
    const earlier = this.earlier(identity)
    this.#outcomes.delete(identity)
    this.#outcomes.set(identity, CERTAINTY[outcome] > CERTAINTY[earlier] ? outcome : earlier)
    if (this.#outcomes.size > SIZE) this.#outcomes.delete(this.#outcomes.keys().next().value as string)
  }
}

/** Attempts of one command. */
export class CommandAttempts {
  readonly #memory: OutcomeMemory
  readonly #identity: string | undefined
  #earlier: PlacementOutcome

  constructor(memory: OutcomeMemory, identity: string | undefined) {
    this.#memory = memory
    this.#identity = identity
    this.#earlier = memory.earlier(identity)
  }

  succeeded(): void {
    this.#memory.note(this.#identity, 'placed')
  }

  /** The error, with the outcome over all attempts so far. */
  failed(error: ClearbatchError): ClearbatchError {
    const known = withEarlier(error, this.#earlier)
    this.#earlier = known.outcome ?? this.#earlier
    this.#memory.note(this.#identity, known.outcome)
    return known
  }
}

/** Identity of a command; equal for every attempt, over REST and over the live feed. */
export const IDENTITY = {
  /** `body`: request body of a placement. */
  order: (body: Readonly<Record<string, unknown>>): string => `order ${String(body.signature).toLowerCase()}`,
  cancel: (orderHash: string): string => `cancel ${orderHash.toLowerCase()}`,
  request: (clientRequestId: string): string => `request ${clientRequestId}`,
} as const
