/** Placing in batches. */
import { type Answer, type Draft, signedBody, type User, type World } from './exchange-fixture.ts'

let ids = 0
export const newId = (): string => `request-${++ids}`

export interface Batch {
  readonly mode?: string
  readonly id?: string
}

export const bodies = (user: User, drafts: readonly Draft[]) =>
  drafts.map((draft) => signedBody(user, draft).body)

export const sendBatch = (
  world: World,
  user: User,
  orders: unknown,
  { mode = 'best_effort', id = newId() }: Batch = {},
): Promise<Answer> =>
  world.send(user, 'POST', '/v0/orders/place/batch', { client_request_id: id, mode, orders })

/** Of each result; null where it was accepted. */
export const codesOf = ({ body }: Answer): (string | null)[] =>
  body.results.map((result: { error?: { details: { code: string } } }) => result.error?.details.code ?? null)
