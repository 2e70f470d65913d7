/**
 * Refusals in the answer to a repeated batch. The batch stored them when it was executed; another attempt, for example a single placement, may have
 * placed the order since then.
 */
import { ApiError, type ItemError, itemError } from '../errors.ts'
import type { PlaceOrderBody } from '../order-entry/schema.ts'
import { saltedOrder } from './command-identity.ts'
import { unlessPlaced } from './parse-items.ts'
import type { CommandPorts } from './submit-single.ts'

interface Refused {
  readonly error: ItemError
}

/** The results with the present outcome of each refused order. `orders`: of the same request, in the same order. */
export const withLaterPlacements = <Result extends object>(
  ports: CommandPorts,
  maker: string,
  orders: readonly PlaceOrderBody[],
  results: readonly (Result | Refused)[],
): Promise<(Result | Refused)[]> =>
  Promise.all(
    results.map(async (result, at) => {
      if (!('error' in result) || result.error.details.outcome !== 'not_placed') return result
      const { code, outcome, retryable: _, ...context } = result.error.details
      const error = new ApiError(code, context, undefined, outcome)
      const judged = await unlessPlaced(ports, saltedOrder(maker, orders[at] as PlaceOrderBody), error)
      return judged === error ? result : { error: itemError(judged) }
    }),
  )
