import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Credential } from '../../client/authorization.ts'
import { createHttpSession } from '../../client/http-session.ts'

/** A server that accepts only the token `valid`. */
function serverOf(valid: () => string) {
  const received: (string | null)[] = []
  const send: typeof fetch = async (_url, init) => {
    const authorization = new Headers(init?.headers).get('authorization')
    received.push(authorization)
    return authorization === valid()
      ? Response.json({ fine: true })
      : Response.json(
          { message: 'expired', details: { code: 'UNAUTHORIZED', retryable: false } },
          { status: 401 },
        )
  }
  return { send, received }
}

describe('client/authorization', () => {
  it('when a token has expired, a request asks for another and is sent again once', async () => {
    let number = 1
    const { send, received } = serverOf(() => 'Bearer 2')
    const http = createHttpSession({
      baseUrl: 'http://exchange',
      authorization: () => `Bearer ${number++}`,
      fetch: send,
    })
    expect(await http.get('/v0/me')).to.deep.equal({ fine: true })
    expect(await http.get('/v0/me')).to.deep.equal({ fine: true })
    expect(received).to.deep.equal(['Bearer 1', 'Bearer 2', 'Bearer 2'])
  })

  it('when concurrent requests are refused, the token is renewed once', async () => {
    let asked = 0
    const { send } = serverOf(() => 'Bearer 2')
    const http = createHttpSession({
      baseUrl: 'http://exchange',
      authorization: async () => `Bearer ${++asked}`,
      fetch: send,
    })
    await Promise.all(Array.from({ length: 5 }, () => http.get('/v0/me')))
    expect(asked).to.equal(2)
  })

  it('when every token is refused, the request fails with status 401 after one renewal', async () => {
    let asked = 0
    const { send, received } = serverOf(() => 'none')
    const http = createHttpSession({
      baseUrl: 'http://exchange',
      authorization: () => `Bearer ${++asked}`,
      fetch: send,
    })
    const status = await http.get('/v0/me').catch((error: { status: number }) => error.status)
    expect([status, received.length]).to.deep.equal([401, 2])
  })

  it('when a fixed key is refused, the request is not sent again', async () => {
    const { send, received } = serverOf(() => 'none')
    const http = createHttpSession({ baseUrl: 'http://exchange', authorization: 'Key x', fetch: send })
    const status = await http.get('/v0/me').catch((error: { status: number }) => error.status)
    expect([status, received.length]).to.deep.equal([401, 1])
  })

  it('when the function fails, the next request asks again', async () => {
    let asked = 0
    const credential = new Credential(() => {
      if (asked++ === 0) throw new Error('the provider does not answer')
      return 'Bearer 1'
    })
    expect(await credential.value().catch((error: Error) => error.message)).to.equal(
      'the provider does not answer',
    )
    expect(await credential.value()).to.equal('Bearer 1')
  })
})
