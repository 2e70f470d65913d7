/** Checks that a placement is rejected without any effect. */
import { expect } from 'chai'
import { expectRefusedOutcome } from '../../support/refused-outcome.ts'
import {
  type Answer,
  type ExchangeFixture,
  type Forgery,
  type OrderTerms,
  signedBody,
  type User,
} from './exchange-fixture.ts'

export interface Refusal {
  readonly when: string
  readonly terms?: OrderTerms
  readonly forgery?: Forgery
  /** Overrides fields of the body after signing; undefined removes a field. */
  readonly body?: Record<string, unknown>
  readonly status?: number
  readonly code: string
  readonly field?: string
  readonly nearest?: unknown
  readonly hint?: RegExp
}

/** Sends the placement and checks the error: code, status, field, nearest valid value, hint; nothing stored, nothing reserved. */
export async function expectRefusal(
  exchange: ExchangeFixture,
  user: User,
  refusal: Refusal,
): Promise<Answer> {
  const { terms, forgery, body: changes, status = 400, code, field, nearest, hint } = refusal
  const before = await exchange.state()
  const { body } = signedBody(user, terms, forgery)
  const answer = await exchange.send(user, 'POST', '/v0/orders', { ...body, ...changes })
  expect(answer.body.details, JSON.stringify(answer.body)).to.include({ code })
  expectRefusedOutcome(answer.body.details)
  expect(answer.status).to.equal(status)
  expect(answer.body.message).to.be.a('string').and.not.equal('')
  expect(answer.body.details.request_id).to.equal(answer.headers['x-request-id'])
  if (field !== undefined) expect(answer.body.details.field).to.equal(field)
  if (nearest !== undefined) expect(answer.body.details.nearest_valid).to.deep.equal(nearest)
  if (hint !== undefined) expect(answer.body.details.hint).to.match(hint)
  expect(await exchange.state(), 'nothing is stored, nothing is reserved').to.deep.equal(before)
  return answer
}
