/** An error of the catalogue as an exception, and as the body of an answer. */
import type { CatalogueEntry, PlacementOutcome, Status } from './catalogue-entry.ts'
import { CATALOGUE, type ErrorCode } from './error-catalogue.ts'
import { echo, echoText } from './http/echo.ts'

/** Details that help the caller to correct the request. */
export interface ErrorContext {
  readonly field?: string
  readonly expected?: unknown
  readonly received?: unknown
  readonly nearest_valid?: unknown
  /** Highest leverage that passes with the order's price; only for MARGIN_REQUIREMENT. */
  readonly nearest_valid_leverage?: number
  readonly [more: string]: unknown
}

/** The error of one item of a command. */
export interface ItemError {
  readonly message: string
  readonly details: ErrorContext & {
    readonly code: ErrorCode
    readonly outcome: PlacementOutcome
    readonly retryable: boolean
  }
}

export interface ErrorBody {
  readonly message: string
  /** `outcome` is present if and only if the request was a command. */
  readonly details: Omit<ItemError['details'], 'outcome'> & {
    readonly outcome?: PlacementOutcome
    readonly request_id: string
  }
}

function outcomeOf(code: ErrorCode): PlacementOutcome {
  const { outcome = 'not_placed' }: CatalogueEntry = CATALOGUE[code]
  return outcome
}

/** An error of the catalogue as an exception. `retryAfter` is in decimal seconds. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly context: ErrorContext
  readonly retryAfter: string | undefined
  readonly outcome: PlacementOutcome

  /** `outcome`: of the command that failed, if more is known than the code implies. */
  constructor(
    code: ErrorCode,
    context: ErrorContext = {},
    retryAfter?: string,
    outcome: PlacementOutcome = outcomeOf(code),
  ) {
    super(CATALOGUE[code].message)
    this.code = code
    this.context = context
    this.retryAfter = retryAfter
    this.outcome = outcome
  }

  get status(): Status {
    return CATALOGUE[this.code].status
  }

  /** The same error of a request that was refused before its command was read: nothing is known of earlier attempts. */
  beforeReading(): ApiError {
    return this.outcome === 'not_placed' ? this.with('not_read') : this
  }

  /** The same error of a command of which more is known. */
  with(outcome: PlacementOutcome, facts: ErrorContext = {}): ApiError {
    return new ApiError(this.code, { ...this.context, ...facts }, this.retryAfter, outcome)
  }
}

export function itemError({ code, context, outcome }: ApiError): ItemError {
  const { message, retryable }: CatalogueEntry = CATALOGUE[code]
  const { field } = context
  const shown: ErrorContext = {
    ...context,
    ...('received' in context ? { received: echo(context.received) } : {}),
    ...(field === undefined ? {} : { field: echoText(field) }),
  }
  return { message, details: { code, ...shown, outcome, retryable } }
}

/** A read has no effect, so its error has no outcome. */
export function errorBody(error: ApiError, requestId: string, isRead: boolean): ErrorBody {
  const { message, details } = itemError(error)
  const { outcome, ...shared } = details
  return { message, details: { ...(isRead ? shared : details), request_id: requestId } }
}
