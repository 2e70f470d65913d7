import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import Fastify, { type FastifyInstance } from 'fastify'
import { after, before, describe, it } from 'mocha'
import { readPage } from '../../../api/page/config.ts'
import { policyOf, SCREENS, servePage } from '../../../api/page/serve.ts'

const HTML = '<!doctype html><title>page</title>'
const config = {
  issuerUrl: 'https://id.example/realm',
  clientId: 'page',
  rpcUrls: ['https://node.example/key', 'https://node.example/other'],
}

describe('api/page', () => {
  let app: FastifyInstance
  let dir = ''

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'clearbatch-page-'))
    mkdirSync(join(dir, 'assets'))
    writeFileSync(join(dir, 'index.html'), HTML)
    writeFileSync(join(dir, 'assets/main-1.js'), 'export {}')
    writeFileSync(join(dir, 'assets/main-1.js.gz'), gzipSync('export {}'))
    writeFileSync(join(dir, 'secret.txt'), 'secret')
    app = Fastify()
    app.setNotFoundHandler((_request, reply) => reply.code(404).send({ code: 'ROUTE_NOT_FOUND' }))
    app.get('/v0/time', () => ({ time: 1 }))
    await servePage(app, { dir, ...config })
  })
  after(async () => {
    await app.close()
    rmSync(dir, { recursive: true })
  })

  it('when a screen is requested, it answers the document with its policy, to be revalidated', async () => {
    for (const path of SCREENS) {
      const url = path.replace(':symbol', 'BTC-PERP').replace(':market', '1').replace(':id', '7')
      const { body, headers } = await app.inject({ url, headers: { host: 'ex.example:8080' } })
      expect(body, url).to.equal(HTML)
      expect(headers['cache-control']).to.equal('no-cache')
      expect(headers['content-security-policy']).to.equal(policyOf(config, 'ex.example:8080'))
    }
  })

  it('when the policy is written, it names each origin once and allows nothing inline', () => {
    const policy = policyOf(config, 'ex.example')
    expect(policy).to.contain(
      "connect-src 'self' ws://ex.example wss://ex.example https://id.example https://node.example;",
    )
    expect(policy).to.contain("default-src 'none'").and.not.to.contain('unsafe')
  })

  it('when a host would change the policy, the header has none of it', async () => {
    const { headers } = await app.inject({ url: '/', headers: { host: "x; script-src 'unsafe-inline'" } })
    expect(headers['content-security-policy']).to.equal(policyOf(config, 'localhost'))
  })

  it('when a hashed file is requested, it is sent compressed and kept for a year, with the policy of a worker', async () => {
    const { headers } = await app.inject({
      url: '/assets/main-1.js',
      headers: { 'accept-encoding': 'gzip', host: 'ex.example' },
    })
    expect(headers['content-encoding']).to.equal('gzip')
    expect(headers['cache-control']).to.equal('public, max-age=31536000, immutable')
    expect(headers['content-security-policy']).to.equal(policyOf(config, 'ex.example'))
  })

  it('when a path is no screen and no asset, it stays what the api answers', async () => {
    expect((await app.inject('/v0/time')).json()).to.deep.equal({ time: 1 })
    for (const url of ['/v0/none', '/nothing', '/assets/none.js', '/secret.txt', '/assets/../secret.txt']) {
      const { statusCode, body } = await app.inject(url)
      expect(statusCode, url).to.equal(404)
      expect(body, url).not.to.contain('secret')
    }
  })

  it('when the configuration is requested, it has what the page may use', async () => {
    expect((await app.inject('/config.json')).json()).to.deep.equal({
      issuer_url: config.issuerUrl,
      client_id: 'page',
      rpc_urls: config.rpcUrls,
    })
  })

  it('when PAGE_DIR is not set, there is no page; a node that is no URL is refused by name', () => {
    expect(readPage({}, 'api')).to.equal(null)
    expect(() => readPage({ PAGE_DIR: dir, PAGE_RPC_URLS: 'ftp://x' }, 'api')).to.throw('PAGE_RPC_URLS')
  })
})
