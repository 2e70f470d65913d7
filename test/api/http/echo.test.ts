import { expect } from 'chai'
import { describe, it } from 'mocha'
import { echo, echoField, echoText, loggedRequest } from '../../../api/http/echo.ts'

const KEY = `cb_${'aB3-_'.repeat(8)}xyz`
const TOKEN = `eyJhbGciOiJFUzI1NiJ9.${'eyJpc3Mi'.repeat(30)}.${'c2ln'.repeat(20)}`
const SIGNATURE = `0x${'1a'.repeat(65)}`

describe('what errors and logs repeat of a request', () => {
  it('when a text contains a key, a token or a signature, these alone are redacted', () => {
    for (const secret of [KEY, KEY.toLowerCase(), TOKEN, SIGNATURE, `${SIGNATURE}01`])
      expect(echoText(`before ${secret} after`)).to.equal('before [redacted] after')
    expect(echo({ api_key: KEY })).to.equal('{"api_key":"[redacted]"}')
  })

  it('when a value has the form of a hash, an address or calldata, it is repeated', () => {
    for (const bytes of [20, 32, 64, 68]) {
      const value = `0x${'ab'.repeat(bytes)}`
      expect(echo(value)).to.equal(value)
    }
    const value = { a: 1 }
    expect(echo(value)).to.equal(value)
    expect(echo(5)).to.equal(5)
  })

  it('when a text is long, its start is repeated, unless a credential was in it', () => {
    expect(echoText('x'.repeat(5_000))).to.equal(`${'x'.repeat(200)}… (5000 characters in all)`)
    for (const offset of [0, 190, 900]) {
      const text = `${'x'.repeat(offset)}${KEY}${SIGNATURE.repeat(20)}`
      const shown = echoText(text)
      for (const part of [KEY.slice(0, 20), SIGNATURE.slice(0, 20)]) expect(shown).to.not.include(part)
      expect(shown.length).to.be.lessThan(260)
    }
  })

  it('when a field is confidential by its name, its length is repeated in place of its value', () => {
    for (const field of [
      'private_key',
      'privateKey',
      'api_key',
      'access_token',
      'key',
      'mnemonic',
      'signature',
    ])
      expect(echoField(field, '0x1234'), field).to.equal('6 characters')
    for (const field of ['session_key_id', 'market_id', 'keys', 'tick'])
      expect(echoField(field, '0x1234'), field).to.equal('0x1234')
  })

  it('when a request is logged, its query is not', () => {
    const request = { method: 'GET', url: `/v0/orders/${KEY}?api_key=${KEY}`, ip: '192.0.2.1' }
    const logged = { method: 'GET', path: '/v0/orders/[redacted]', remoteAddress: '192.0.2.1' }
    expect(loggedRequest(request)).to.deep.equal(logged)
  })
})
