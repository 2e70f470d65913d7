/** One error of the catalogue. */
import type { PlacementOutcome } from './error-catalogue.ts'

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
