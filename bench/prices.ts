/**
 * Measures the price publisher with three HTTP sources per market and 2 of 3 signers: its CPU share of one core, and
 * the time from observation to usable report.
 */
// npm run bench:prices -- [--markets 300] [--seconds 30] [--warmup 10]
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { computeAddress, id } from 'ethers'
import { createDb, createPool } from '../db/client.ts'
import { createLeases } from '../db/leases.ts'
import type { Address, MarketId } from '../domain/units.ts'
import { createPriceJob } from '../keeper/compose-prices.ts'
import { parsePriceFile } from '../keeper/price-file.ts'
import { systemClock } from '../service/clock.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { feedIdOf } from '../stack/deploy.ts'
import { freePort } from '../stack/ports.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { SILENT_LOGGER } from '../test/keeper/support/market-fixture.ts'
import { perpetual } from '../test/support/markets.ts'
import { freshDatabase } from '../test/support/postgres.ts'
import { listMarket } from '../test/support/rows/markets.ts'

const SOURCES = ['alpha', 'beta', 'gamma'] as const
const SIGNERS = ['one', 'two', 'three'] as const
const THRESHOLD = 2
const CHAIN_ID = 6343
const ORACLE = `0x${'33'.repeat(20)}`
const SECRET = 'secret of the benchmark'
/** Argument that starts this file as a document server in a process of its own. */
const SERVE = 'serve-prices'

// ---------------------------------------------------------------------- the sources

/** Serves one document per source with the prices of all markets. Prices change with every request. */
async function servePrices(markets: number): Promise<void> {
  let step = 0
  const server = createServer((_, response) => {
    step++
    const now = Date.now()
    const prices = Array.from({ length: markets }, (_, at) => {
      const price = 1_000 + at + Math.sin(step / 50 + at) / 10
      return { price: price.toFixed(6), time: now }
    })
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ prices }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  process.send?.((server.address() as AddressInfo).port)
}

// ---------------------------------------------------------------------- the parts

const feedsOf = (markets: number) => Array.from({ length: markets }, (_, at) => feedIdOf(at + 1))

function startSigner(dir: string, name: string, port: number, internalPort: number): ChildProcess {
  return spawn(process.execPath, ['signer/main.ts'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ...{ SIGNER_KEY: id(name), SIGNER_SECRET: SECRET, SIGNER_FEEDS_FILE: join(dir, 'feeds.json') },
      ...{ CHAIN_ID: `${CHAIN_ID}`, ADDRESS_ORACLE: ORACLE, LOG_LEVEL: 'error' },
      ...{ PORT: `${port}`, INTERNAL_PORT: `${internalPort}` },
    },
  })
}

function priceFileOf(markets: number, sourceUrl: string, ports: readonly number[]): string {
  const signers = SIGNERS.map((name, at) => ({
    ...{ name, url: `http://127.0.0.1:${ports[at]}` },
    address: computeAddress(id(name)),
  }))
  const feeds = feedsOf(markets).map((feed_id, at) => ({
    ...{ market_id: at + 1, feed_id, deviation: 1 },
    sources: SOURCES.map((name) => ({
      ...{ name, kind: 'http', url: `${sourceUrl}/${name}`, poll_ms: 250 },
      ...{ price: `prices.${at}.price`, time: `prices.${at}.time` },
    })),
  }))
  return JSON.stringify({ oracle: ORACLE, threshold: THRESHOLD, signers, feeds })
}

interface Measured {
  readonly reports: number
  readonly seconds: number
  readonly cpuMs: number
  /** Milliseconds from a price's observation to the commit of its report; one value per report. */
  readonly usableMs: readonly number[]
  readonly faults: number
}

interface Run {
  readonly markets: number
  readonly seconds: number
  readonly warmup: number
}

async function measure({ markets, seconds, warmup }: Run, url: string, priceFile: string): Promise<Measured> {
  const db = createDb(createPool({ url, connections: 2, name: 'bench' }))
  for (let at = 1; at <= markets; at++) {
    const trader = `0x${at.toString(16).padStart(40, '0')}` as Address
    await listMarket(db, { ...perpetual, marketId: at as MarketId, symbol: `M${at}`, trader })
  }
  const counts = { reports: 0, faults: 0, usableMs: [] as number[] }
  const metrics = {
    published(reports: number, elapsed: number) {
      counts.reports += reports
      for (let at = 0; at < reports; at++) counts.usableMs.push(elapsed * 1_000)
    },
    absent() {},
    dropped() {},
    signerFault: () => void counts.faults++,
  }
  const load = () => parsePriceFile(priceFile)
  const addresses = new Set(SIGNERS.map((name) => computeAddress(id(name)).toLowerCase() as Address))
  const config = { read: () => priceFile, parse: parsePriceFile, load, keys: new Map(), secret: SECRET }
  const ports = {
    ...{ db, chainId: CHAIN_ID, rpcUrl: 'http://127.0.0.1:1', rpcTimeoutMs: 1_000, clock: systemClock },
    killPoint: () => {},
    metrics,
    logger: SILENT_LOGGER,
    informer: null,
    chain: { feedSigners: async () => ({ signers: addresses, threshold: THRESHOLD }) },
  }
  const job = createPriceJob(ports, config)
  const fence = await createLeases(db, 'bench', 3_600_000).acquire('prices')
  if (fence === null) throw new Error('the lease is taken')
  await job.start?.(fence)
  const until = async (end: number) => {
    while (performance.now() < end) await sleep(await job.step(fence))
  }
  await until(performance.now() + warmup * 1_000)
  Object.assign(counts, { reports: 0, faults: 0, usableMs: [] })
  const [cpu, began] = [process.cpuUsage(), performance.now()]
  await until(began + seconds * 1_000)
  const used = process.cpuUsage(cpu)
  const took = (performance.now() - began) / 1_000
  await job.finish?.(fence)
  await db.destroy()
  return { ...counts, seconds: took, cpuMs: (used.user + used.system) / 1_000 }
}

// ---------------------------------------------------------------------- the run

async function main(): Promise<void> {
  const count = (help: string) => wholeNumber(help, { least: 1 })
  const run: Run = argumentsOf({
    command: 'npm run bench:prices --',
    flags: {
      markets: withDefault(count('number of markets'), 300),
      seconds: withDefault(count('duration of the measurement'), 30),
      warmup: withDefault(count('seconds before the measurement'), 10),
    },
  })
  const dir = mkdtempSync(join(tmpdir(), 'clearbatch-bench-prices-'))
  writeFileSync(
    join(dir, 'feeds.json'),
    JSON.stringify({ feeds: feedsOf(run.markets).map((feed_id) => ({ feed_id })) }),
  )
  const sources = fork(import.meta.filename, [SERVE, `${run.markets}`])
  const [sourcePort] = await once(sources, 'message')
  const ports: number[] = []
  const signers: ChildProcess[] = []
  for (const name of SIGNERS) {
    const port = await freePort()
    ports.push(port)
    signers.push(startSigner(dir, name, port, await freePort()))
  }
  try {
    // A signer refuses reports in the first two seconds after its start.
    await sleep(4_000)
    const priceFile = priceFileOf(run.markets, `http://127.0.0.1:${sourcePort}`, ports)
    const measured = await measure(run, await freshDatabase(), priceFile)
    const result = {
      markets: run.markets,
      reports_per_market_and_second: Number((measured.reports / run.markets / measured.seconds).toFixed(2)),
      cpu_share_of_a_core: Number((measured.cpuMs / 1_000 / measured.seconds).toFixed(3)),
      usable_p50_ms: Math.round(percentile(measured.usableMs, 0.5)),
      usable_p99_ms: Math.round(percentile(measured.usableMs, 0.99)),
      signer_faults: measured.faults,
    }
    console.table([result])
    console.log(JSON.stringify({ bench: 'prices', seconds: run.seconds, ...result }))
  } finally {
    for (const child of [sources, ...signers]) child.kill()
    rmSync(dir, { recursive: true })
  }
}

if (process.argv[2] === SERVE) await servePrices(Number(process.argv[3]))
else {
  await main()
  process.exit(0)
}
