/** The error that every failed request throws: status, code, outcome, and whether a retry can succeed. */

/**
 * Whether the command took effect. After `unknown`, only an idempotent request may be sent again.
 * `not_read`: refused before the command was read, for example by a rate limit; it had no effect.
 */
export type PlacementOutcome = 'not_placed' | 'not_read' | 'placed' | 'unknown'

/** The codes that this client handles or creates. Every other code is the server's. */
export const CODES = {
  pending: 'HTV1_READ_AFTER_PENDING',
  unavailable: 'HTV1_READ_AFTER_UNAVAILABLE',
  capacity: 'HTV1_READ_AFTER_CAPACITY',
  stale: 'HTV1_READ_AFTER_STALE_BOOKMARK',
  /** The request failed without a response. */
  network: 'CLIENT_NO_ANSWER',
  timeout: 'CLIENT_TIMEOUT',
  /** The program reads the messages of a topic more slowly than they arrive. */
  slow: 'CLIENT_TOO_SLOW',
  /** The file's content does not match its digest. */
  digest: 'CLIENT_DIGEST_MISMATCH',
} as const

export interface ErrorFacts {
  /** HTTP status; 0 if there was no response. */
  readonly status: number
  readonly code: string
  /** Null for an error of a read, which has no effect. */
  readonly outcome: PlacementOutcome | null
  readonly retryable: boolean
  /** From `Retry-After`; null if the response has no such header. */
  readonly retryAfterMs: number | null
  readonly requestId: string | null
  readonly details: Readonly<Record<string, unknown>>
}

const NO_RESPONSE = {
  status: 0,
  retryable: true,
  retryAfterMs: null,
  requestId: null,
  details: {},
} as const

export class ClearbatchError extends Error implements ErrorFacts {
  override readonly name = 'ClearbatchError'
  declare readonly status: number
  declare readonly code: string
  /** Null for an error of a read, which has no effect. */
  declare readonly outcome: PlacementOutcome | null
  declare readonly retryable: boolean
  declare readonly retryAfterMs: number | null
  declare readonly requestId: string | null
  declare readonly details: Readonly<Record<string, unknown>>

  /** The defaults are those of a failure without a response, which a retry may resolve. */
  constructor(message: string, facts: Pick<ErrorFacts, 'code' | 'outcome'> & Partial<ErrorFacts>) {
    super(message)
    Object.assign(this, NO_RESPONSE, facts)
  }
}

const OUTCOMES: readonly unknown[] = ['not_placed', 'not_read', 'placed', 'unknown']

/**
 * An exchange error without an outcome belongs to a read. An error without a code comes from another server:
 * its outcome is `unknown` for status 408 and 5xx, otherwise `not_read`.
 */
export function errorOfResponse(status: number, body: unknown, retryAfter: string | null): ClearbatchError {
  const { message, details } = shape(body)
  const outcome = OUTCOMES.includes(details.outcome)
    ? (details.outcome as PlacementOutcome)
    : typeof details.code === 'string'
      ? null
      : status === 408 || status >= 500
        ? 'unknown'
        : 'not_read'
  return new ClearbatchError(message ?? `HTTP ${status}`, {
    status,
    code: typeof details.code === 'string' ? details.code : `HTTP_${status}`,
    outcome,
    retryable: typeof details.retryable === 'boolean' ? details.retryable : status === 429 || status >= 500,
    retryAfterMs: retryAfter !== null && /^\d+(\.\d+)?$/.test(retryAfter) ? Number(retryAfter) * 1000 : null,
    requestId: typeof details.request_id === 'string' ? details.request_id : null,
    details,
  })
}

/** Without further facts, the exchange may or may not have received the request. */
export const errorWithoutResponse = (
  cause: unknown,
  facts: Partial<Pick<ErrorFacts, 'outcome' | 'details'>> = {},
): ClearbatchError => {
  const timedOut = cause instanceof Error && cause.name === 'TimeoutError'
  const error = new ClearbatchError(
    timedOut ? 'no response within the time limit' : `no response: ${String(cause)}`,
    {
      code: timedOut ? CODES.timeout : CODES.network,
      outcome: 'unknown',
      ...facts,
    },
  )
  error.cause = cause
  return error
}

function shape(body: unknown): { message: string | undefined; details: Record<string, unknown> } {
  if (typeof body !== 'object' || body === null) return { message: undefined, details: {} }
  const { message, details } = body as { message?: unknown; details?: unknown }
  return {
    message: typeof message === 'string' ? message : undefined,
    details: typeof details === 'object' && details !== null ? (details as Record<string, unknown>) : {},
  }
}
