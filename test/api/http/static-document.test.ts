import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { acceptsGzip } from '../../../api/http/static-document.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

describe('the descriptions of the api', () => {
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
  })
  after(() => exchange.stop())

  const request = (url: string, headers: Record<string, string> = {}) =>
    exchange.api.app.inject({ method: 'GET', url, headers })

  for (const path of ['/v0/openapi.json', '/v0/asyncapi.json']) {
    it(`when ${path} is requested with gzip, it is sent compressed with an ETag, and 304 with that ETag`, async () => {
      const plain = await request(path)
      const packed = await request(path, { 'accept-encoding': 'gzip, br' })
      expect([plain.statusCode, packed.statusCode]).to.deep.equal([200, 200])
      expect(plain.headers['content-encoding']).to.equal(undefined)
      expect(packed.headers['content-encoding']).to.equal('gzip')
      for (const { headers } of [plain, packed]) {
        expect(headers['content-type']).to.equal('application/json; charset=utf-8')
        expect(String(headers.vary).toLowerCase()).to.include('accept-encoding')
      }
      expect(JSON.parse(gunzipSync(packed.rawPayload).toString())).to.deep.equal(plain.json())
      expect(packed.rawPayload.length).to.be.below(plain.rawPayload.length / 4)
      expect(packed.headers.etag).to.not.equal(plain.headers.etag)
      for (const { headers } of [plain, packed]) {
        const again = await request(path, {
          'if-none-match': String(headers.etag),
          ...(headers['content-encoding'] ? { 'accept-encoding': 'gzip' } : {}),
        })
        expect([again.statusCode, again.rawPayload.length]).to.deep.equal([304, 0])
      }
    })
  }

  it('when Accept-Encoding refuses gzip, it is not accepted', () => {
    for (const header of ['gzip', 'br, gzip;q=0.5', '*', 'GZIP ; q=1.0'])
      expect(acceptsGzip(header), header).to.equal(true)
    for (const header of [undefined, '', 'br', 'gzip;q=0', 'gzip; q=0.0', 'identity'])
      expect(acceptsGzip(header), header).to.equal(false)
  })
})
