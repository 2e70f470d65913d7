import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import { Client } from '../../client/client.ts'
import type { StackAccount, StackFile } from '../../stack/stack-file.ts'
import { openTrade, PATIENCE_MS } from './support/actions.ts'
import { chromiumPath, openPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'

/**
 * Runs in the page, before its own scripts: counts messages of the feed by the ms from the message to the end of the frame that follows, and sums
 * the cumulative layout shift as browsers define it, the largest sum of shifts within 5 s without a pause of 1 s. A fixed array of counts keeps the
 * measurement out of the heap that it measures.
 */
const WATCH = `(() => {
  window.delays = new Uint32Array(5_000)
  window.shifts = 0
  let span = { first: -Infinity, last: -Infinity, sum: 0 }
  const Native = window.WebSocket
  window.WebSocket = class extends Native {
    constructor(...args) {
      super(...args)
      this.addEventListener('message', () => {
        const at = performance.now()
        requestAnimationFrame(() => setTimeout(() => {
          window.delays[Math.min(window.delays.length - 1, Math.round(performance.now() - at))] += 1
        }))
      })
    }
  }
  new PerformanceObserver((list) => {
    for (const { startTime, value, hadRecentInput } of list.getEntries()) {
      if (hadRecentInput) continue
      const continues = startTime - span.last < 1000 && startTime - span.first < 5000
      span = { first: continues ? span.first : startTime, last: startTime, sum: continues ? span.sum + value : value }
      window.shifts = Math.max(window.shifts, span.sum)
    }
  }).observe({ type: 'layout-shift', buffered: true })
})()`

interface Figures {
  /** Messages by ms. */
  readonly delays: readonly number[]
  readonly shifts: number
  readonly paintMs: number
  readonly interactiveMs: number
}

const READ = `({
  delays: [...window.delays],
  shifts: window.shifts,
  paintMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity,
  interactiveMs: performance.getEntriesByType('navigation')[0]?.domInteractive ?? Infinity,
})`

const sum = (counts: readonly number[]): number => counts.reduce((a, b) => a + b, 0)

/** The least number of ms that this part of the messages does not exceed. */
function quantile(counts: readonly number[], part: number): number {
  let left = sum(counts) * part
  return counts.findIndex((count) => {
    left -= count
    return left <= 0
  })
}

async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { usedSize: number }
  await session.detach()
  return usedSize
}

/** Processor time of the page's main thread in ms, which other processes on the machine do not change. */
async function mainThreadTime(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return 1_000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN)
  }
  const first = await read()
  return async () => (await read()) - first
}

/** A match in every batch: book, trades, batches and candles then have a message each. */
const ORDER_EVERY_MS = 100

/** Trades against the demo traders, alternately on both sides. Returns the function that ends it. */
function keepTrading({ base_url, accounts, markets }: StackFile): () => Promise<void> {
  const { private_key, api_key } = accounts.at(-1) as StackAccount
  const client = new Client({ baseUrl: base_url, privateKey: private_key, apiKey: api_key })
  const marketId = (markets[0] as StackFile['markets'][number]).market_id
  const stop = new AbortController()
  const run = async (): Promise<void> => {
    for (let count = 0; !stop.signal.aborted; count++) {
      const side = count % 2 === 0 ? 'LONG' : 'SHORT'
      const order = { marketId, side, quantity: '0.001', leverage: 2 } as const
      await client.orders.place(order).catch(() => null)
      await sleep(ORDER_EVERY_MS)
    }
  }
  const running = run()
  return async () => {
    stop.abort()
    await running
  }
}

/** Times depend on what else the machine does, so the bounds are several times the goals; the figures are printed. */
const SLACK = 5
/** `FIGURES=600 npm run bench:page` follows the feed for ten minutes. */
const FOLLOWED_MS = 1_000 * Math.max(20, Number(process.env.FIGURES) || 0)
/** A slope over a shorter time is noise. */
const SLOPE_FROM_MS = 300_000
/** The heap is read this often, after a collection. */
const HEAP_EVERY_MS = FOLLOWED_MS / 10

/** In bytes per hour, by least squares. */
function slopePerHour(samples: readonly { readonly at: number; readonly bytes: number }[]): number {
  const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length
  const [at, bytes] = [mean(samples.map((each) => each.at)), mean(samples.map((each) => each.bytes))]
  const covariance = samples.reduce((sum, each) => sum + (each.at - at) * (each.bytes - bytes), 0)
  const variance = samples.reduce((sum, each) => sum + (each.at - at) ** 2, 0)
  return (covariance / variance) * 3_600_000
}

interface LighthouseReport {
  readonly lighthouseVersion: string
  readonly categories: { readonly performance: { readonly score: number } }
  readonly audits: Readonly<Record<string, { readonly displayValue?: string }>>
}

const LIGHTHOUSE = 'lighthouse@13.5.0'
const METRICS = {
  FCP: 'first-contentful-paint',
  LCP: 'largest-contentful-paint',
  TBT: 'total-blocking-time',
  CLS: 'cumulative-layout-shift',
  SI: 'speed-index',
} as const

/** Lighthouse has 176 MB and needs Node.js 22.19, so it is no dependency: npx fetches it, or `LIGHTHOUSE` names its command. */
async function lighthouse(url: string, flags: readonly string[]): Promise<LighthouseReport> {
  const [command = 'npx', ...first] = process.env.LIGHTHOUSE?.split(' ') ?? ['npx', '--yes', LIGHTHOUSE]
  const options = [
    '--only-categories=performance',
    '--output=json',
    '--quiet',
    '--chrome-flags=--headless=new --no-sandbox',
  ]
  const env = { ...process.env, CHROME_PATH: chromiumPath ?? '' }
  const limits = { maxBuffer: 64_000_000, timeout: 180_000 }
  const { stdout } = await promisify(execFile)(command, [...first, url, ...options, ...flags], {
    env,
    ...limits,
  })
  return JSON.parse(stdout) as LighthouseReport
}

describe('web: figures (skipped: npm run bench:page measures them)', function () {
  this.timeout(4 * PATIENCE_MS + 2 * FOLLOWED_MS)
  before(function () {
    if (process.env.FIGURES === undefined) this.skip()
  })
  const exchange = usePageExchange()

  it('when the feed is followed, frames come soon after messages, nothing shifts, and the heap stays flat', async () => {
    const { page, context } = await openPage(exchange.browser)
    await page.addInitScript(WATCH)
    await openTrade(page, exchange.stack.file.base_url)
    const endTrading = keepTrading(exchange.stack.file)
    await page.waitForTimeout(5_000)
    const busy = await mainThreadTime(page)
    const heap = [{ at: 0, bytes: await heapOf(page) }]
    for (let at = HEAP_EVERY_MS; at <= FOLLOWED_MS; at += HEAP_EVERY_MS) {
      await page.waitForTimeout(HEAP_EVERY_MS)
      heap.push({ at, bytes: await heapOf(page) })
    }
    const { delays, shifts, paintMs, interactiveMs } = await page.evaluate<Figures>(READ)
    const busyPart = (await busy()) / FOLLOWED_MS
    await endTrading()
    await context.close()
    const messages = sum(delays)
    const [p50, p99] = [quantile(delays, 0.5), quantile(delays, 0.99)]
    console.log(
      `      first paint ${paintMs.toFixed(0)} ms, interactive ${interactiveMs.toFixed(0)} ms, ${messages} messages: ` +
        `to the frame p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)} ms; shifts ${shifts.toFixed(3)}`,
    )
    const rate = (1_000 * messages) / (FOLLOWED_MS + 5_000)
    console.log(
      `      ${rate.toFixed(1)} messages per second; the main thread takes ${(100 * busyPart).toFixed(1)} % of a core`,
    )
    const sizes = heap.map(({ bytes }) => (bytes / 1e6).toFixed(1)).join(' ')
    console.log(`      heap over ${FOLLOWED_MS / 1000} s: ${sizes} MB`)
    if (FOLLOWED_MS >= SLOPE_FROM_MS) {
      const slope = slopePerHour(heap.slice(heap.length / 2)) / 1e6
      console.log(`      its second half grows ${slope.toFixed(1)} MB per hour`)
    }
    expect(messages).to.be.greaterThan(10)
    expect(p50).to.be.lessThan(50 * SLACK)
    expect(paintMs).to.be.lessThan(1_000 * SLACK)
    expect(shifts).to.be.at.most(0.1)
    expect((heap.at(-1)?.bytes ?? 0) - (heap[0]?.bytes ?? 0)).to.be.lessThan(4_000_000)
  })

  for (const { form, flags, least } of [
    { form: 'desktop', flags: ['--preset=desktop'], least: 0.9 },
    { form: 'phone', flags: [], least: 0.5 },
  ])
    it(`when Lighthouse loads the trade screen on a ${form}, its performance is at least ${least * 100}`, async function () {
      const report = await lighthouse(`${exchange.stack.file.base_url}/trade/BTC-PERP`, flags).catch(
        (error: Error) => {
          console.log(`      skipped: Lighthouse did not run: ${error.message.split('\n')[0]}`)
          return this.skip()
        },
      )
      const { score } = report.categories.performance
      const metrics = Object.entries(METRICS).map(
        ([name, id]) => `${name} ${report.audits[id]?.displayValue}`,
      )
      console.log(
        `      Lighthouse ${report.lighthouseVersion}, ${form}: ${Math.round(score * 100)}; ${metrics.join(', ')}`,
      )
      expect(score).to.be.at.least(least)
    })
})
