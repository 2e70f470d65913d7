/** A signer over HTTP: who may ask it, what it signs, and what its files may contain. */
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { type FeedId, reportHasher, signerOf } from '../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../domain/units.ts'
import { createRemoteSigner } from '../../keeper/adapters/report-signers.ts'
import { keccak, recover } from '../../service/crypto.ts'
import { ConfigError } from '../../service/environment.ts'
import type { HttpListener } from '../../service/http-listener.ts'
import { plainKey } from '../../service/keys/key-source.ts'
import { createReportKey, type ReportKey, type SigningAnswer } from '../../service/report-key.ts'
import { readConfig } from '../../signer/config.ts'
import { parseFeedsFile } from '../../signer/feeds-file.ts'
import { serveSigner } from '../../signer/server.ts'
import { SILENT_LOGGER } from '../keeper/support/market-fixture.ts'
import { e18 } from '../support/markets.ts'

const domain = { chainId: 6343n, oracle: `0x${'33'.repeat(20)}` as Address }
const FEED: FeedId = `0x${'0'.repeat(63)}1`
const SECRET = 'a shared secret of the operator'
const FEEDS = JSON.stringify({ feeds: [{ feed_id: FEED, high: '1' }] })

describe('a signer over HTTP', () => {
  let server: HttpListener
  let key: ReportKey
  let answered: SigningAnswer[]
  let now: number

  beforeEach(async () => {
    now = 1_800_000_000_000
    answered = []
    const feeds = parseFeedsFile(FEEDS)
    key = createReportKey({
      ...{ key: plainKey(id('signer')), domain, rulesOf: (feedId) => feeds.get(feedId) ?? null },
      ...{ clock: { now: () => now as Millis }, after: now as Millis },
    })
    server = await serveSigner({
      ...{ listener: { host: '127.0.0.1', port: 0 }, secret: SECRET, key, logger: SILENT_LOGGER },
      onAnswers: (answers) => answered.push(...answers),
    })
    now += 1
  })
  afterEach(() => server.close())

  const url = () => `http://127.0.0.1:${server.port}`
  const remote = (secret = SECRET) =>
    createRemoteSigner({ name: 'one', url: url(), address: key.address, secret })
  const request = (price: string, feedId: FeedId = FEED) => ({
    feedId,
    reading: { price: e18(price), observedAt: now as Millis },
  })
  const post = (body: string, secret = SECRET, path = '/v1/sign') =>
    fetch(`${url()}${path}`, { method: 'POST', body, headers: { authorization: `Bearer ${secret}` } })

  it('when the publisher asks, each report is signed or refused, in the order of the requests', async () => {
    const other: FeedId = `0x${'0'.repeat(63)}2`
    const requests = [request('0.5'), request('1.1'), request('0.5', other), request('0.6')]
    const answers = await remote().sign(requests, 1_000)
    expect(answers.slice(1)).to.deep.equal([
      { refusal: 'OUT_OF_RANGE' },
      { refusal: 'UNKNOWN_FEED' },
      { refusal: 'CONFLICT' },
    ])
    const [first] = answers
    if (first === undefined || !('signature' in first)) throw new Error('not signed')
    const digest = reportHasher(domain, keccak)(FEED, request('0.5').reading)
    expect(signerOf(digest, first.signature, recover)).to.equal(key.address)
    expect(answered).to.deep.equal(answers)
  })

  it('when the secret is wrong, nothing is signed', async () => {
    const refused = await remote('another secret')
      .sign([request('0.5')], 1_000)
      .catch((error: Error) => error)
    expect(String(refused)).to.include('status 401')
    expect((await fetch(`${url()}/v1/sign`, { method: 'POST', body: '{}' })).status).to.equal(401)
    expect(answered).to.deep.equal([])
  })

  it('when a request has another form, it is answered with the reason and nothing is signed', async () => {
    const report = { feed_id: FEED, price: '5', observed_at: now }
    for (const [body, status] of [
      ['no JSON', 400],
      ['null', 400],
      ['{"reports": 5}', 400],
      [JSON.stringify({ reports: Array.from({ length: 1_001 }, () => report) }), 400],
      [JSON.stringify({ reports: [{ ...report, price: 5 }] }), 400],
      [JSON.stringify({ reports: [{ ...report, price: '5'.repeat(39) }] }), 400],
      [JSON.stringify({ reports: [{ ...report, feed_id: '0x1' }] }), 400],
      [JSON.stringify({ reports: [{ ...report, observed_at: 1.5 }] }), 400],
      [JSON.stringify({ reports: [null] }), 400],
      [' '.repeat(1_000_001), 413],
    ] as const)
      expect((await post(body)).status, body.slice(0, 80)).to.equal(status)
    expect((await post('{}', SECRET, '/v1/key')).status).to.equal(404)
    expect(answered).to.deep.equal([])
  })

  describe('with an answer of its own invention', () => {
    let hostile: Server
    let body: string
    beforeEach(async () => {
      hostile = createServer((_, response) => response.end(body))
      await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve))
    })
    afterEach(() => new Promise((resolve) => hostile.close(resolve)))
    const ask = () => {
      const { port } = hostile.address() as AddressInfo
      const options = { name: 'one', url: `http://127.0.0.1:${port}`, address: key.address, secret: SECRET }
      return createRemoteSigner(options).sign([request('0.5')], 1_000)
    }

    it('when it refuses for an unknown reason, the answer counts as no signature, and the reason reaches no metric', async () => {
      body = '{"answers": [{"refusal": "reason 17"}, {"refusal": "STALE"}]}'
      expect(await ask()).to.deep.equal([{ signature: '' }, { refusal: 'STALE' }])
    })

    it('when it is larger than any list of answers, the signer counts as unreachable', async () => {
      body = `{"answers": [], "more": "${'x'.repeat(500_000)}"}`
      const failure = await ask().catch((error: Error) => error)
      expect(String(failure)).to.include('answered with more than 500000 bytes')
    })
  })

  it('when a signer has just started, it does not sign times for which it may have signed another price', async () => {
    now -= 1
    expect(await remote().sign([request('0.5')], 1_000)).to.deep.equal([{ refusal: 'CONFLICT' }])
  })
})

describe('the files and variables of a signer', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'clearbatch-signer-'))
    writeFileSync(join(dir, 'feeds.json'), FEEDS)
  })
  afterEach(() => rm(dir, { recursive: true }))

  const env = (changes: Record<string, string> = {}) => ({
    SIGNER_KEY: id('signer'),
    SIGNER_SECRET: SECRET,
    SIGNER_FEEDS_FILE: join(dir, 'feeds.json'),
    CHAIN_ID: '6343',
    ADDRESS_ORACLE: domain.oracle,
    ...changes,
  })

  it('when everything is set, the configuration has the key, the feeds and a listener on this machine only', () => {
    const config = readConfig(env())
    expect(config.key.address).to.equal(new Wallet(id('signer')).address.toLowerCase())
    expect(config).to.include({ secret: SECRET })
    expect(config.listener).to.deep.equal({ host: '127.0.0.1', port: 8085 })
    expect(config.feeds.get(FEED)?.range).to.deep.equal({ low: 1n, high: e18('1') })
  })

  it('when a variable is missing or invalid, the error names it and never the key', () => {
    for (const [name, value] of [
      ['SIGNER_KEY', '0x12'],
      ['SIGNER_KEY_FILE', '/nowhere/key'],
      ['SIGNER_SECRET', 'short'],
      ['SIGNER_FEEDS_FILE', '/nowhere/feeds.json'],
      ['CHAIN_ID', 'main'],
      ['ADDRESS_ORACLE', '0x1'],
    ] as const) {
      expect(() => readConfig(env({ [name]: value })), name)
        .to.throw(ConfigError, name)
        .with.property('message')
        .that.does.not.include('0x12')
    }
  })

  for (const [what, text, problem] of [
    ['is not JSON', 'feeds', 'is not JSON'],
    ['has no feeds', '{"feeds": []}', 'feeds is []: expected a list of at least one object'],
    [
      'has an invalid feed',
      '{"feeds": [{"feed_id": "BTC"}]}',
      'feeds[0].feed_id is "BTC": expected 0x and 64',
    ],
    ['has a feed twice', `{"feeds": [{"feed_id": "${FEED}"}, {"feed_id": "${FEED}"}]}`, 'feeds[1].feed_id'],
    ['has an unknown name', `{"feeds": [{"feed_id": "${FEED}", "hi": 1}]}`, 'feeds[0].hi is not known'],
    ['has an empty range', `{"feeds": [{"feed_id": "${FEED}", "low": 2, "high": 1}]}`, 'feeds[0].high is 1'],
  ]) {
    it(`when the file of feeds ${what}, the error says where`, () => {
      expect(() => parseFeedsFile(text as string)).to.throw(problem as string)
    })
  }

  it('when a feed is that of a final price, corrections are not bounded, and its range is', () => {
    const feed = { feed_id: FEED, kind: 'final', low: '0', high: '1' }
    const rules = parseFeedsFile(JSON.stringify({ feeds: [feed] })).get(FEED)
    expect(rules).to.deep.include({ range: { low: 0n, high: 10n ** 18n }, move: null })
  })

  it('when a feed is a probability, its prices are at most 1 and its moves those of a binary market', () => {
    const parse = (change: object) =>
      parseFeedsFile(JSON.stringify({ feeds: [{ feed_id: FEED, kind: 'probability', ...change }] })).get(FEED)
    const rules = parse({ low: '0.001' })
    expect(rules?.range).to.deep.equal({ low: 10n ** 15n, high: 10n ** 18n })
    expect(rules?.move).to.include({ kind: 'binary_future', moveBase: 100_000n })
    expect(() => parse({ high: '1.1' })).to.throw('feeds[0].high is "1.1": expected at most 1')
  })

  it('when a feed is that of a trading session, 0 is signed and jumps are not bounded', () => {
    const rules = parseFeedsFile(`{"feeds": [{"feed_id": "${FEED}", "kind": "session"}]}`).get(FEED)
    expect(rules).to.deep.include({ move: null })
    expect(rules?.range.low).to.equal(0n)
  })
})
