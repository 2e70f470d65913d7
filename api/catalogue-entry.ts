/** The form of an error of the catalogue. */

/**
 * Whether a command took effect. `not_read`: this attempt was rejected before its command was read, for example by a
 * rate limit; earlier attempts were not checked.
 */
export const OUTCOMES = ['not_placed', 'not_read', 'placed', 'unknown'] as const
/** Never `not_placed` for a repeated command if an earlier attempt may have been executed. */
export type PlacementOutcome = (typeof OUTCOMES)[number]

export type Status = 400 | 401 | 403 | 404 | 408 | 409 | 429 | 500 | 503

export interface CatalogueEntry {
  readonly status: Status
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean
  readonly message: string
  readonly outcome?: PlacementOutcome
}

export const permanent = (status: Status, message: string): CatalogueEntry => ({
  status,
  retryable: false,
  message,
})
export const temporary = (status: Status, message: string): CatalogueEntry => ({
  status,
  retryable: true,
  message,
})
