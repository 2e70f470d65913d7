/** The status of a session key as the contract with traders derives it, and what may be signed, registered and revoked. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  type KeyChange,
  MOST_ACTIVE_KEYS,
  registrationRefusal,
  revocationRefusal,
  type SigningKey,
  sessionKeyStatus,
  signerRefusal,
} from '../../../domain/session-keys/session-key.ts'
import type { Millis } from '../../../domain/units.ts'

const END = 1_000_000
const key: SigningKey = { permissions: 3, expires_at: END, revoked_at: null, is_revoking: false }
const at = (seconds: number, millis = 0) => (seconds * 1000 + millis) as Millis
const BEFORE = at(END - 10)

describe('sessionKeyStatus', () => {
  it('when a key is approved, it is ACTIVE until its expiry, then EXPIRED', () => {
    expect(sessionKeyStatus(key, at(END - 1, 999))).to.equal('ACTIVE')
    expect(sessionKeyStatus(key, at(END))).to.equal('EXPIRED')
    expect(sessionKeyStatus(key, at(END + 86_400))).to.equal('EXPIRED')
  })

  it('when its revocation is on the chain, it is REVOKED at any time', () => {
    for (const now of [BEFORE, at(END), at(2 * END)])
      expect(sessionKeyStatus({ ...key, revoked_at: 5 }, now)).to.equal('REVOKED')
  })
})

describe('signerRefusal', () => {
  const cases = [
    ['is active', {}, null],
    ['is revoked', { revoked_at: 5 }, 'SESSION_KEY_REVOKED'],
    ['is being revoked', { is_revoking: true }, 'SESSION_KEY_REVOKING'],
    ['has expired', { expires_at: END - 20 }, 'SESSION_KEY_EXPIRED'],
    ['is in its last second', { expires_at: END - 10 + 1 }, null],
    ['is about to expire within a second', { expires_at: END - 10 }, 'SESSION_KEY_EXPIRED'],
    ['may change margin only', { permissions: 2 }, 'SESSION_KEY_NOT_PERMITTED'],
  ] as const
  for (const [what, changes, code] of cases) {
    it(`when the key ${what}, orders get ${code ?? 'no refusal'}`, () => {
      expect(signerRefusal({ ...key, ...changes }, 'orders', BEFORE)?.code ?? null).to.equal(code)
    })
  }

  it('when the key may only trade, adjustments are refused', () => {
    expect(signerRefusal({ ...key, permissions: 1 }, 'margin', BEFORE)?.code).to.equal(
      'SESSION_KEY_NOT_PERMITTED',
    )
    expect(signerRefusal({ ...key, permissions: 2 }, 'margin', BEFORE)).to.equal(null)
  })
})

describe('registrations and revocations', () => {
  const owner = `0x${'aa'.repeat(20)}`
  const sessionKey = `0x${'bb'.repeat(20)}`
  const change: KeyChange = { owner, sessionKey, key: null, now: BEFORE }
  const free = { isAccount: false, active: 0 }

  it('when the key is new, it may be registered but not revoked', () => {
    expect(registrationRefusal(change, free)).to.equal(null)
    expect(revocationRefusal(change)).to.deep.equal({ code: 'SESSION_KEY_NOT_FOUND' })
  })

  it('when the key is zero, the owner or an account, it may not be registered', () => {
    const codeOf = (changes: Partial<KeyChange>, isAccount = false) =>
      registrationRefusal({ ...change, ...changes }, { ...free, isAccount })?.code
    expect(codeOf({ sessionKey: `0x${'0'.repeat(40)}` })).to.equal('SESSION_KEY_ZERO')
    expect(codeOf({ sessionKey: owner })).to.equal('SESSION_KEY_IS_ACCOUNT')
    expect(codeOf({}, true)).to.equal('SESSION_KEY_IS_ACCOUNT')
  })

  it('when the chain knows the key, a registration is refused with its status', () => {
    const statusOf = (changes: Partial<SigningKey>, now = BEFORE) => {
      const refusal = registrationRefusal({ ...change, key: { ...key, ...changes }, now }, free)
      return refusal?.code === 'SESSION_KEY_REGISTERED' ? refusal.status : refusal
    }
    expect(statusOf({})).to.equal('ACTIVE')
    expect(statusOf({ is_revoking: true })).to.equal('REVOKING')
    expect(statusOf({ revoked_at: 4 })).to.equal('REVOKED')
    expect(statusOf({}, at(END))).to.equal('EXPIRED')
  })

  it('when the account has the most active keys, a registration is refused and a revocation is not', () => {
    expect(registrationRefusal(change, { ...free, active: MOST_ACTIVE_KEYS - 1 })).to.equal(null)
    expect(registrationRefusal(change, { ...free, active: MOST_ACTIVE_KEYS })?.code).to.equal(
      'SESSION_KEY_LIMIT',
    )
    expect(revocationRefusal({ ...change, key })).to.equal(null)
  })

  it('when the key has expired, it may be revoked; when it is revoked, it may not', () => {
    expect(revocationRefusal({ ...change, key, now: at(2 * END) })).to.equal(null)
    expect(revocationRefusal({ ...change, key: { ...key, revoked_at: 4 } })).to.deep.equal({
      ...{ code: 'SESSION_KEY_REVOKED', revoked_at: 4 },
    })
  })
})
