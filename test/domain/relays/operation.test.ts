/** How the chain's state ends an operation, and which nonce the next one has. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { isFulfilled, nextForwardNonce } from '../../../domain/relays/operation.ts'

const register = { kind: 'register_session_key', sessionKey: '0x01' } as const
const revoke = { kind: 'revoke_session_key', sessionKey: '0x01' } as const
const invalidate = { kind: 'invalidate_margin_nonces', marketId: 1, minimum: 7n } as const
const active = { permissions: 3, revoked_at: null }
const revoked = { permissions: 3, revoked_at: 5 }

describe('isFulfilled', () => {
  const cases = [
    ['a registration finds no key', register, { key: null, floor: 0n }, false],
    ['a registration finds the key with both permissions', register, { key: active, floor: 0n }, true],
    [
      'a registration finds one permission',
      register,
      { key: { ...active, permissions: 1 }, floor: 0n },
      false,
    ],
    ['a registration finds a revoked key', register, { key: revoked, floor: 0n }, false],
    ['a revocation finds no key', revoke, { key: null, floor: 0n }, false],
    ['a revocation finds an active key', revoke, { key: active, floor: 0n }, false],
    ['a revocation finds a revoked key', revoke, { key: revoked, floor: 0n }, true],
    ['a minimum finds a lower one', invalidate, { key: null, floor: 6n }, false],
    ['a minimum finds itself', invalidate, { key: null, floor: 7n }, true],
    ['a minimum finds a higher one', invalidate, { key: null, floor: 8n }, true],
  ] as const
  for (const [what, effect, observed, expected] of cases) {
    it(`when ${what}, it is ${expected ? '' : 'not '}fulfilled`, () => {
      expect(isFulfilled(effect, observed)).to.equal(expected)
    })
  }
})

describe('nextForwardNonce', () => {
  it('when operations are open, it is the lowest nonce that is neither executed nor theirs', () => {
    expect(nextForwardNonce(4, [])).to.equal(4)
    expect(nextForwardNonce(4, [4, 5])).to.equal(6)
    expect(nextForwardNonce(4, [5, 6])).to.equal(4)
    fc.assert(
      fc.property(fc.nat(20), fc.uniqueArray(fc.nat(40)), (executed, open) => {
        const next = nextForwardNonce(executed, open)
        expect(next).to.be.at.least(executed)
        expect(open).to.not.include(next)
        for (let nonce = executed; nonce < next; nonce++) expect(open).to.include(nonce)
      }),
    )
  })
})
