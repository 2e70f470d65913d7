/** The error of an atomic command of which items are rejected. */
import type { PlacementOutcome } from '../catalogue-entry.ts'
import { ApiError, itemError } from '../errors.ts'

/** The first error, with the errors of all rejected items in it; null if no item is rejected. */
export function wholeError(itemResults: readonly unknown[]): ApiError | null {
  const rejected = itemResults.flatMap((itemResult, index) =>
    itemResult instanceof ApiError ? [{ index, error: itemResult }] : [],
  )
  const [first] = rejected
  if (first === undefined) return null
  const { code, context, retryAfter } = first.error
  const errors = rejected.map(({ index, error }) => ({ index, ...itemError(error) }))
  const field =
    context.field === undefined ? `orders.${first.index}` : `orders.${first.index}.${context.field}`
  return new ApiError(
    code,
    { ...context, field, index: first.index, errors },
    retryAfter,
    outcomeOfAll(rejected.map(({ error }) => error)),
  )
}

/** The outcome of a command that is rejected with these errors of its items. */
function outcomeOfAll(errors: readonly ApiError[]): PlacementOutcome {
  if (errors.some(({ outcome }) => outcome === 'placed' || outcome === 'unknown')) return 'unknown'
  return errors.some(({ outcome }) => outcome === 'not_read') ? 'not_read' : 'not_placed'
}
