/** Spans of a process with a collector that answers, refuses, is silent or is absent. */
import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createSpans } from '../../service/span-export.ts'
import { batchSpan, callerSpan, readSpan, type Spans, spanCounts, withSpan } from '../../service/spans.ts'
import { startSpans, traceExportOf } from '../../service/trace-settings.ts'
import { OtlpCollector } from '../support/otlp-collector.ts'
import { waitFor } from '../support/patience.ts'

const ALL = 1_000_000
/** More than may wait. */
const FLOOD = 6_000

describe('the export of spans', function () {
  this.timeout(120_000)
  let collector: OtlpCollector
  let spans: Spans | null = null
  const logged: { readonly level: string; readonly message: string }[] = []
  const logger = {
    info: (_facts: object, message: string) => void logged.push({ level: 'info', message }),
    warn: (_facts: object, message: string) => void logged.push({ level: 'warn', message }),
  }
  beforeEach(async () => {
    logged.splice(0)
    collector = await OtlpCollector.start()
  })
  afterEach(async () => {
    await spans?.stop()
    collector.stop()
  })

  const open = (sampleMillionths = ALL, url = collector.url): Spans => {
    spans = createSpans('test', { url, sampleMillionths }, logger)
    return spans
  }
  const addTo = (own: Spans, count = 1): void => {
    for (let n = 0; n < count; n++)
      own.add({ name: `span ${n}`, startedAt: own.now() - 1, endedAt: own.now(), parent: null })
  }
  const countedSince = async (before: Readonly<Record<string, number>>, total: number) => {
    const since = () =>
      Object.fromEntries(Object.entries(spanCounts()).map(([name, n]) => [name, n - (before[name] ?? 0)]))
    return waitFor(
      async () => since(),
      (counts) => Object.values(counts).reduce((sum, n) => sum + n, 0) >= total,
    )
  }

  it('when a span has a parent, links, attributes and an error, the collector gets all of them', async () => {
    const own = open()
    const parent = own.start({ name: 'parent', kind: 'server', startedAt: own.now(), parent: null })
    const linked = batchSpan(1, 42, 1_000)
    const startedAt = Math.floor(own.now()) + 0.25
    const endedAt = startedAt + 1.25
    own.add({
      name: 'child',
      startedAt,
      endedAt,
      parent,
      links: [linked],
      attributes: { text: 'a', number: 3, list: ['x', 'y'] },
      error: { code: 'reverted', isFault: true },
    })
    parent.end()
    await own.stop()
    const [child] = collector.named('child')
    expect(child).to.deep.equal({
      process: 'test',
      traceId: parent.traceId,
      parentSpanId: parent.spanId,
      spanId: child?.spanId,
      name: 'child',
      startedAt,
      endedAt,
      attributes: { text: 'a', number: 3, list: ['x', 'y'], 'error.type': 'reverted' },
      links: [linked],
    })
    expect(collector.named('parent')[0]?.parentSpanId).to.equal(undefined)
  })

  it('when two processes derive the span of a batch, both have its ids, and other batches have other ids', async () => {
    const own = open()
    const batch = batchSpan(1, 42, 1_000)
    expect(batchSpan('1', 42, 1_000)).to.deep.equal(batch)
    for (const other of [batchSpan(2, 42, 1_000), batchSpan(1, 43, 1_000), batchSpan(1, 42, 1_001)])
      expect(other.traceId).not.to.equal(batch.traceId)
    own.add({ name: 'batch', startedAt: 1, endedAt: 2, parent: null, own: batch })
    own.add({ name: 'next', startedAt: 1, endedAt: 2, parent: null })
    await own.stop()
    expect(collector.named('batch')[0]).to.include(batch)
    expect(collector.named('next')[0]?.traceId).not.to.equal(batch.traceId)
  })

  it('when the share of requests is a tenth, about a tenth has spans', () => {
    const own = open(100_000)
    const sampled = Array.from({ length: 5_000 }, () => own.isSampled()).filter((is) => is)
    expect(sampled.length).to.be.within(350, 650)
  })

  it('when more spans are made than may wait, the rest is dropped and counted', async () => {
    const before = { ...spanCounts() }
    const own = open()
    addTo(own, FLOOD)
    const counts = await countedSince(before, FLOOD)
    expect(counts.failed).to.equal(0)
    expect(counts.dropped).to.be.at.least(FLOOD - 4_096)
    expect(collector.spans).to.have.length(counts.exported as number)
  })

  for (const mode of ['refuse', 'absent'] as const)
    it(`when the collector is ${mode === 'refuse' ? 'refusing' : 'absent'}, spans fail, one line says so, and the next line is its return`, async () => {
      const before = { ...spanCounts() }
      collector.mode = 'refuse'
      const own = open(ALL, mode === 'absent' ? 'http://127.0.0.1:1/v1/traces' : collector.url)
      addTo(own, 300)
      const counts = await countedSince(before, 300)
      expect(counts).to.deep.equal({ exported: 0, failed: 300, dropped: 0 })
      const message = 'spans were not exported; they are dropped'
      expect(logged).to.deep.equal([{ level: 'warn', message }])
      if (mode === 'absent') return
      collector.mode = 'accept'
      addTo(own)
      await countedSince(before, 301)
      expect(logged.at(-1)).to.deep.equal({ level: 'info', message: 'spans are exported again' })
    })

  it('when the collector is silent, adding spans takes no time, memory is bounded and the stop takes a second', async () => {
    const before = { ...spanCounts() }
    collector.mode = 'silent'
    const own = open()
    addTo(own, FLOOD)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    addTo(own, FLOOD)
    expect(spanCounts().dropped - (before.dropped ?? 0)).to.be.at.least(2 * FLOOD - 4_096)
    const started = performance.now()
    await own.stop()
    expect(performance.now() - started).to.be.within(900, 20_000)
  })

  it('when a traceparent is sent, its span is the parent, and an invalid one is none', () => {
    const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
    expect(callerSpan(`00-${traceId}-${spanId}-01`)).to.deep.equal({ traceId, spanId, isSampled: true })
    expect(callerSpan(`00-${traceId}-${spanId}-00`)?.isSampled).to.equal(false)
    for (const wrong of [
      undefined,
      ['a'],
      '',
      `00-${traceId}-${'0'.repeat(16)}-01`,
      `ff-${traceId}-${spanId}-01`,
    ])
      expect(callerSpan(wrong)).to.equal(null)
  })

  it('when a command carries its span, both parts are read again, and text after a slash that is no span is none', () => {
    const span = batchSpan(1, 2, 3)
    expect(readSpan(withSpan('req-1', span))).to.deep.equal({ logId: 'req-1', span })
    expect(readSpan('req-1')).to.deep.equal({ logId: 'req-1', span: null })
    expect(readSpan('req-1/x')).to.deep.equal({ logId: 'req-1', span: null })
  })

  it('when no address is set, no process loads the SDK', () => {
    const script = `
      import { registerHooks } from 'node:module'
      const loaded = []
      registerHooks({ resolve(specifier, context, next) {
        if (/^@opentelemetry\\/(sdk|exporter)/.test(specifier)) loaded.push(specifier)
        return next(specifier, context)
      } })
      for (const name of ['api', 'keeper/engine', 'keeper', 'indexer']) await import('./' + name + '/compose.ts')
      const { startSpans } = await import('./service/trace-settings.ts')
      await startSpans('api', null, console)
      const off = loaded.length
      await startSpans('api', { url: 'http://127.0.0.1:1/', sampleMillionths: 1 }, console)
      process.stdout.write(JSON.stringify([off, loaded.length > 0]))
      process.exit()`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    })
    expect(stdout, stderr).to.equal('[0,true]')
  })

  it('when no address is set, there are no spans, and an address that is no URL ends the start', async () => {
    expect(traceExportOf({}, 'api')).to.equal(null)
    expect(await startSpans('api', null, logger)).to.equal(null)
    expect(() => traceExportOf({ TRACE_EXPORT_URL: 'nowhere' }, 'api')).to.throw('TRACE_EXPORT_URL')
    const env = { TRACE_EXPORT_URL: 'http://collector:4318/v1/traces', TRACE_SAMPLE_MILLIONTHS: '0' }
    expect(() => traceExportOf(env, 'api')).to.throw('TRACE_SAMPLE_MILLIONTHS')
  })
})
