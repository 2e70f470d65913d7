/** The form of an error of the catalogue. */

/**
 * Whether a command took effect: it did not, it did, or the outcome is not known. `not_read`: the request was refused before its command was
 * read, for example by a rate limit. This attempt has changed nothing, and earlier attempts were not looked up. Once a command may have been
 * executed, no answer to a repetition of it is `not_placed`.
 */
export const OUTCOMES = ['not_placed', 'not_read', 'placed', 'unknown'] as const
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
