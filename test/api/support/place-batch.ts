/** Sends batches of placements. */
import {
  type Answer,
  type ExchangeFixture,
  type OrderTerms,
  signedBody,
  type User,
} from './exchange-fixture.ts'

let ids = 0
export const newRequestId = (): string => `request-${++ids}`

export interface BatchOptions {
  readonly mode?: string
  readonly id?: string
}

export const bodies = (user: User, allTerms: readonly OrderTerms[]) =>
  allTerms.map((terms) => signedBody(user, terms).body)

export const sendBatch = (
  exchange: ExchangeFixture,
  user: User,
  orders: unknown,
  { mode = 'best_effort', id = newRequestId() }: BatchOptions = {},
): Promise<Answer> =>
  exchange.send(user, 'POST', '/v0/orders/place/batch', { client_request_id: id, mode, orders })

/** The error code of each result; null if it was accepted. */
export const codesOf = ({ body }: Answer): (string | null)[] =>
  body.results.map((result: { error?: { details: { code: string } } }) => result.error?.details.code ?? null)
