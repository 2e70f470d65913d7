/** The configuration of the price publisher: what it may contain, and how a running publisher follows its changes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { computeAddress, id } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { latestReport } from '../../../db/oracle-reports.ts'
import type { Address } from '../../../domain/units.ts'
import { createPriceJob } from '../../../keeper/compose-prices.ts'
import { readConfig } from '../../../keeper/config.ts'
import { parsePriceFile } from '../../../keeper/price-file.ts'
import { systemClock } from '../../../service/clock.ts'
import { ConfigError } from '../../../service/environment.ts'
import { priceConfigOf } from '../../../stack/price-config.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { MarketFixture, SILENT_LOGGER } from '../support/market-fixture.ts'
import { FEED_ID, NO_PRICE_METRICS, ORACLE } from './publisher-fixture.ts'

const HTTP = { name: 'alpha', kind: 'http', url: 'https://prices.example/btc', price: 'last' }
const walkOf = (first: string) => ({
  ...{ name: 'walk', kind: 'walk', first, home: first },
  grain: '1',
  volatility: 0,
})
const INDEX = { market_id: 1, feed_id: FEED_ID, sources: [HTTP] }
const VALID = { oracle: ORACLE.oracle, threshold: 1, signers: [{ name: 'local' }], feeds: [INDEX] }
const parse = (changes: object) => parsePriceFile(JSON.stringify({ ...VALID, ...changes }))

describe('keeper/price-file', () => {
  it('when only what is required is set, the rest has defaults', () => {
    const [feed] = parse({}).feeds
    expect(feed).to.deep.include({ marketId: 1, feed: 'index', minimum: 1, interval: 500, deviation: 1_000n })
    expect(feed?.sources[0]).to.deep.include({
      maxAge: 5_000,
      maxDeviation: 10_000n,
      pollMs: 500,
      time: null,
    })
    expect(
      parse({ feeds: [{ ...INDEX, sources: ['a', 'b', 'c'].map((name) => ({ ...HTTP, name })) }] }).feeds[0]
        ?.minimum,
    ).to.equal(2)
  })

  it('when the local stack writes its configuration, the keeper accepts it', () => {
    const { feeds } = parsePriceFile(JSON.stringify(priceConfigOf(ORACLE.oracle)))
    expect(feeds.map(({ marketId, feed }) => `${feed} ${marketId}`)).to.deep.equal([
      ...['index 1', 'index 2', 'session 2', 'index 3', 'final 3', 'index 4', 'final 4'],
    ])
  })

  const source = (changes: object) => ({ feeds: [{ ...INDEX, sources: [{ ...HTTP, ...changes }] }] })
  for (const [what, changes, problem] of [
    ['no oracle', { oracle: 'none' }, 'oracle is "none": expected an address'],
    ['more signatures than signers', { threshold: 2 }, 'threshold is 2: expected a whole number from 1 to 1'],
    ['a signer twice', { signers: [{ name: 'a' }, { name: 'a' }] }, 'signers has a twice'],
    [
      'a remote signer without an address',
      { signers: [{ name: 'a', url: 'http://x' }] },
      'signers[0].address is missing',
    ],
    ['a feed twice', { feeds: [INDEX, INDEX] }, 'feeds has index of market 1 twice'],
    ['a feed without sources', { feeds: [{ ...INDEX, sources: [] }] }, 'feeds[0].sources is []'],
    [
      'a session feed with sources',
      { feeds: [{ ...INDEX, feed: 'session' }] },
      'feeds[0].sources is not known',
    ],
    ['a higher minimum than sources', { feeds: [{ ...INDEX, minimum: 2 }] }, 'feeds[0].minimum is 2'],
    [
      'a round without an aggregator',
      { feeds: [{ ...INDEX, report: 'round' }] },
      'feeds[0].report is "round"',
    ],
    ['an unknown kind', source({ kind: 'ftp' }), 'feeds[0].sources[0].kind is "ftp": expected one of http,'],
    ['a URL of another protocol', source({ url: 'file:///x' }), 'feeds[0].sources[0].url is "file:///x"'],
    ['a misspelt name', source({ max_age: 5 }), 'feeds[0].sources[0].max_age is not known'],
    ['a negative age', source({ max_age_ms: -1 }), 'max_age_ms is -1: expected a whole number of at least 1'],
  ] as const) {
    it(`when the file has ${what}, the error names the place, the value and what is valid`, () => {
      expect(() => parse(changes)).to.throw(problem)
    })
  }
})

describe('the price configuration of a keeper', () => {
  let dir: string
  let file: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'clearbatch-prices-'))
    file = join(dir, 'prices.json')
    await writeFile(file, JSON.stringify({ ...VALID, feeds: [{ ...INDEX, sources: [walkOf('100')] }] }))
    const [worker, publisher] = ['ab'.repeat(32), 'cd'.repeat(32)]
    await writeFile(join(dir, 'keys.json'), JSON.stringify({ worker, publisher }))
  })
  afterEach(() => rm(dir, { recursive: true }))

  const configOf = (env: Record<string, string> = {}) =>
    readConfig({
      ...{ DATABASE_URL: 'postgres://localhost/x', RPC_URL: 'http://localhost', CHAIN_ID: '6343' },
      ADDRESS_MARGIN_BANK: ORACLE.oracle,
      ...{ ADDRESS_USDM: ORACLE.oracle, RELAYER_KEYS: '{}', PRICES_FILE: file },
      ...{ ENGINE_URL: '/run/engine', ENGINE_KEYS_FILE: join(dir, 'keys.json') },
      ORACLE_KEYS: JSON.stringify({ local: id('local') }),
      ...env,
    }).prices

  it('when a signer has neither a key nor a secret, or the file is invalid, the error names the variable', async () => {
    expect(configOf({ PRICES_FILE: '' })).to.equal(null)
    expect(() => configOf({ ORACLE_KEYS: '' })).to.throw(
      ConfigError,
      'ORACLE_KEYS has no key of the signer local',
    )
    expect(() => configOf({ ORACLE_KEYS: '{"local": "0x1"}' })).to.throw(
      ConfigError,
      'ORACLE_KEYS has for signer local an invalid key',
    )
    expect(() => configOf({ PRICES_FILE: join(dir, 'none.json') })).to.throw(ConfigError, 'PRICES_FILE')
    const remote = { name: 'far', url: 'http://10.0.0.1', address: ORACLE.oracle }
    await writeFile(file, JSON.stringify({ ...VALID, signers: [remote] }))
    expect(() => configOf()).to.throw(ConfigError, 'SIGNER_SECRET is not set')
    await writeFile(file, '{')
    expect(() => configOf()).to.throw(ConfigError, 'PRICES_FILE is invalid: the file is not JSON')
  })

  it('when the file changes while the publisher runs, it follows; an invalid file leaves the last valid one', async () => {
    const fixture = await MarketFixture.open(perpetual)
    const config = configOf()
    if (config === null) throw new Error('no prices')
    const errors: string[] = []
    const logger = { ...SILENT_LOGGER, error: (_: object, message: string) => void errors.push(message) }
    const ports = { chainId: 6343, rpcUrl: 'http://127.0.0.1:1', rpcTimeoutMs: 100, killPoint: () => {} }
    const signers = new Set([computeAddress(id('local')).toLowerCase() as Address])
    const chain = { feedSigners: async () => ({ signers, threshold: 1 }) }
    const job = createPriceJob(
      {
        ...ports,
        db: fixture.db,
        clock: systemClock,
        metrics: NO_PRICE_METRICS,
        logger,
        chain,
        informer: null,
      },
      config,
    )
    const fence = await fixture.lease('prices')
    await job.start?.(fence)
    const priceAfter = async (ms: number) => {
      for (const end = Date.now() + ms; Date.now() < end; ) await sleep(await job.step(fence))
      return (await latestReport(fixture.db, { marketId: 1, feed: 'index' }))?.price
    }
    try {
      expect(await priceAfter(200)).to.equal(e18('100'))
      await writeFile(file, '{')
      expect(await priceAfter(1_300)).to.equal(e18('100'))
      expect(errors).to.include('price configuration is invalid; the last valid one stays')
      const csv = join(dir, 'recorded.csv')
      await writeFile(csv, 'time_ms,price\n1000,107\n900000000,108\n')
      const recording = {
        name: 'r',
        kind: 'recording',
        path: csv,
        started_at_ms: Date.now(),
        max_age_ms: 60_000,
      }
      await writeFile(file, JSON.stringify({ ...VALID, feeds: [{ ...INDEX, sources: [recording] }] }))
      expect(await priceAfter(2_500)).to.equal(e18('107'))
    } finally {
      await job.finish?.(fence)
      await fixture.close()
    }
  })
})
