import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import { openTrade, PATIENCE_MS } from './support/actions.ts'
import { chromiumPath, openPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'

/**
 * Runs in the page, before its own scripts: the time from each message of the feed to the end of the frame that follows, and the cumulative layout
 * shift as browsers define it, the largest sum of shifts within 5 s without a pause of 1 s.
 */
const WATCH = `(() => {
  window.delays = []
  window.shifts = 0
  let span = { first: -Infinity, last: -Infinity, sum: 0 }
  const Native = window.WebSocket
  window.WebSocket = class extends Native {
    constructor(...args) {
      super(...args)
      this.addEventListener('message', () => {
        const at = performance.now()
        requestAnimationFrame(() => setTimeout(() => window.delays.push(performance.now() - at)))
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
  readonly delays: readonly number[]
  readonly shifts: number
  readonly paintMs: number
  readonly interactiveMs: number
}

const READ = `({
  delays: window.delays,
  shifts: window.shifts,
  paintMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity,
  interactiveMs: performance.getEntriesByType('navigation')[0]?.domInteractive ?? Infinity,
})`

const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ??
  Number.NaN

async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { usedSize: number }
  await session.detach()
  return usedSize
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
    await page.waitForTimeout(5_000)
    const heap = [{ at: 0, bytes: await heapOf(page) }]
    for (let at = HEAP_EVERY_MS; at <= FOLLOWED_MS; at += HEAP_EVERY_MS) {
      await page.waitForTimeout(HEAP_EVERY_MS)
      heap.push({ at, bytes: await heapOf(page) })
    }
    const { delays, shifts, paintMs, interactiveMs } = await page.evaluate<Figures>(READ)
    await context.close()
    const [p50, p99] = [quantile(delays, 0.5), quantile(delays, 0.99)]
    console.log(
      `      first paint ${paintMs.toFixed(0)} ms, interactive ${interactiveMs.toFixed(0)} ms, ${delays.length} messages: ` +
        `to the frame p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)} ms; shifts ${shifts.toFixed(3)}`,
    )
    const sizes = heap.map(({ bytes }) => (bytes / 1e6).toFixed(1)).join(' ')
    console.log(`      heap over ${FOLLOWED_MS / 1000} s: ${sizes} MB`)
    if (FOLLOWED_MS >= SLOPE_FROM_MS) {
      const slope = slopePerHour(heap.slice(heap.length / 2)) / 1e6
      console.log(`      its second half grows ${slope.toFixed(1)} MB per hour`)
    }
    expect(delays.length).to.be.greaterThan(10)
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
