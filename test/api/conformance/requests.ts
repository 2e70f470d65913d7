/** Tests generated from the tables of requests: placements, signatures, commands over several orders. */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { describe } from 'mocha'
import { expectRefusedOutcome } from '../../support/refused-outcome.ts'
import { expectAmountsAgree, expectObject } from './answers.ts'
import { COMMANDS, type Expected, PLACEMENTS, type Terms } from './contract-requests.ts'
import { SIGNATURES, type SignatureRow } from './contract-signing.ts'
import { test } from './coverage.ts'
import { type Answer, type Exchange, near } from './exchange.ts'
import type { Fixture } from './fixture.ts'
import {
  type Account,
  type Forgery,
  flagsOf,
  type MarketFacts,
  nextSalt,
  type OrderDraft,
  personally,
  signed,
} from './signing.ts'

/** The test of a rule. */
export type Proof = (suite: Suite) => Promise<void>

export interface Suite {
  readonly exchange: Exchange
  readonly fixture: Fixture
}

const seconds = (expiration: Terms['expiration']): number => {
  if (typeof expiration === 'number') return expiration
  if (expiration === undefined) return 0
  return Math.floor(Date.now() / 1000) + (expiration === 'soon' ? 600 : -600)
}

/** Converts terms in permille of the oracle price to an order in human units. Without terms: a buy that rests. */
export function draftOf(market: MarketFacts, terms: Terms = {}): OrderDraft {
  const { price, trigger, expiration, ...draft } = terms
  const isPriced = terms.order_type === undefined || terms.order_type.endsWith('LIMIT')
  return {
    ...draft,
    ...(isPriced && { price: near(market, price ?? 970) }),
    ...(trigger !== undefined && { trigger_price: near(market, trigger) }),
    expiration_seconds: seconds(expiration),
  }
}

/** Errors of commands have an outcome; errors of reads, among them the sizing helpers, have none. */
export function expectAnswer({ status, body }: Answer, expected: Expected, isCommand: boolean): void {
  const received = JSON.stringify(body)
  expect(status, received).to.equal(expected.status)
  if (expected.status === 200) {
    expectAmountsAgree(body)
    return
  }
  expectObject('error', body)
  expect(body.details, received).to.include({ code: expected.code, field: expected.field })
  if (isCommand) expectRefusedOutcome(body.details, received)
  else expect(body.details, received).to.not.have.property('outcome')
  expect(body.details.request_id, received).to.be.a('string')
}

const without = (body: object, changes: object = {}): object =>
  Object.fromEntries(Object.entries({ ...body, ...changes }).filter(([, value]) => value !== undefined))

async function tidyUp(exchange: Exchange, account: Account, { status, body }: Answer): Promise<void> {
  if (status === 200) await exchange.cancel(account, body.order.order_hash)
}

const titleOf = (condition: string, { status, code }: Expected): string =>
  `when ${condition}, it is ${status === 200 ? 'accepted' : `rejected with ${code}`}`

export function testPlacements(suite: () => Suite): void {
  describe('POST /v0/orders, field by field', () => {
    for (const { id, terms, body: changes, expected } of PLACEMENTS) {
      test(id, titleOf(`a placement has ${id}`, expected), async () => {
        const { exchange, fixture } = suite()
        const { body } = signed(fixture.spare, fixture.market, draftOf(fixture.market, terms))
        // An omitted field is signed with its default.
        const answer = await exchange.post(fixture.spare, '/v0/orders', without(body, changes))
        expectAnswer(answer, expected, true)
        if (expected.status === 200) {
          expectObject('placement', answer.body)
          expectObject('order', answer.body.order)
        }
        await tidyUp(exchange, fixture.spare, answer)
      })
    }
  })
}

const SIGNING: Readonly<Record<NonNullable<SignatureRow['signing']>, Forgery>> = {
  'no suffix': { sign: (digest, wallet) => personally(digest, wallet).slice(0, -2) },
  'other suffix': { sign: (digest, wallet) => `${personally(digest, wallet).slice(0, -2)}00` },
  'bare digest': { sign: (digest, wallet) => `${wallet.signingKey.sign(digest).serialized}01` },
  'another wallet': { signer: Wallet.createRandom() as unknown as Wallet },
}

export function testSignatures(suite: () => Suite): void {
  describe('order signing', () => {
    for (const { id, terms, flags, message, domain, struct, signing, isAccepted = false } of SIGNATURES) {
      test(
        id,
        `when an order is signed with ${id}, it is ${isAccepted ? 'accepted' : 'rejected'}`,
        async () => {
          const { exchange, fixture } = suite()
          const { spare, market } = fixture
          const salt = nextSalt()
          const draft = { ...draftOf(market, terms), salt }
          const right = BigInt(flagsOf(salt, draft.side ?? 'LONG', draft.reduce_only ?? false))
          const forgery: Forgery = {
            ...(signing && SIGNING[signing]),
            ...(domain && { domain }),
            ...(struct && { struct }),
            message: {
              ...message,
              ...(flags && { flags: `0x${(right ^ flags).toString(16).padStart(16, '0')}` }),
            },
          }
          const { hash, body } = signed(spare, market, draft, forgery)
          const answer = await exchange.post(spare, '/v0/orders', body)
          if (isAccepted) {
            expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
            expect(answer.body.order.order_hash).to.equal(hash)
          } else {
            expect(answer.status, JSON.stringify(answer.body)).to.equal(400)
            expect(answer.body.details.code).to.match(/^SIGNATURE_/)
            expect(answer.body.details).to.include({ field: 'signature', outcome: 'not_placed' })
          }
          await tidyUp(exchange, spare, answer)
        },
      )
    }
  })
}

let ids = 0
export const requestId = (): string => `conformance-${++ids}`

/** Replaces the `$` values of the table by a fresh id, signed orders or hashes. */
function filledIn({ fixture }: Suite, value: unknown, account: Account): unknown {
  if (value === '$id') return requestId()
  if (value === '$order') return signed(account, fixture.market, draftOf(fixture.market)).body
  const [, what, count] = /^\$(orders|hashes):(\d+)$/.exec(String(value)) ?? []
  if (what === undefined) return value
  return Array.from({ length: Number(count) }, () => {
    if (what === 'hashes') return `0x${nextSalt().toString(16).padStart(64, '0')}`
    return signed(account, fixture.market, draftOf(fixture.market)).body
  })
}

const READ_ONLY_POSTS = ['/v0/orders/validate', '/v0/orders/estimate', '/v0/orders/calculate-quantity']

export function testCommands(suite: () => Suite): void {
  describe('commands over several orders, and sizing', () => {
    for (const { id, path, body, expected } of COMMANDS) {
      test(id, titleOf(id, expected), async () => {
        const { exchange, fixture } = suite()
        const account = exchange.account(3)
        const filled = Object.entries(body).map(
          ([name, value]) => [name, filledIn(suite(), value, account)] as const,
        )
        let at = path
        if (path.includes('$hash')) {
          const placed = await exchange.place(account, draftOf(fixture.market))
          at = path.replace('$hash', placed.body.order.order_hash)
        }
        const answer = await exchange.post(account, at, without(Object.fromEntries(filled)))
        expectAnswer(answer, expected, !READ_ONLY_POSTS.includes(path))
        if (path.endsWith('place/batch')) await exchange.post(account, '/v0/orders/cancel/all')
      })
    }
  })
}
