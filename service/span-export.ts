/** Sends spans to a collector with the SDK of OpenTelemetry. It is loaded only if `TRACE_EXPORT_URL` is set. */
import { hostname } from 'node:os'
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { systemClock } from './clock.ts'
import type { Logger } from './logger.ts'
import {
  countSpans,
  type FinishedSpan,
  type SpanError,
  type SpanRef,
  type SpanStart,
  type Spans,
  type TraceExport,
} from './spans.ts'

/** Spans that wait or are being sent; further spans are dropped. About 4 MiB. */
const MOST_WAITING = 4_096
/** Spans per request: few, because the thread that writes them as JSON also decides orders. */
const BATCH = 128
const DELAY_MS = 1_000
/** Time for one request with its repetitions. */
const EXPORT_MS = 5_000
const STOP_MS = 1_000
const REPORT_MS = 60_000
const MILLION = 1_000_000
const LIMITS = { attributeCountLimit: 32, attributeValueLengthLimit: 256, linkCountLimit: 128 }

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0]

/** Reports an outage of the collector when it begins, each minute, and when it ends. */
class OutageReport {
  readonly #logger: Pick<Logger, 'info' | 'warn'>
  #reportedAt: number | null = null

  constructor(logger: Pick<Logger, 'info' | 'warn'>) {
    this.#logger = logger
  }

  failed({ error }: Result, spans: number): void {
    const now = systemClock.now()
    if (this.#reportedAt !== null && now - this.#reportedAt < REPORT_MS) return
    this.#reportedAt = now
    const { code } = (error ?? {}) as NodeJS.ErrnoException
    this.#logger.warn({ spans, code, reason: error?.message }, 'spans were not exported; they are dropped')
  }

  exported(): void {
    if (this.#reportedAt === null) return
    this.#reportedAt = null
    this.#logger.info({}, 'spans are exported again')
  }
}

/** Bounds the spans that wait and the spans in flight together, and counts what becomes of them. */
class BoundedProcessor implements SpanProcessor {
  readonly #inner: BatchSpanProcessor
  #waiting = 0

  constructor(exporter: SpanExporter, report: OutageReport) {
    const counted: SpanExporter = {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#waiting -= spans.length
          const isExported = result.code === 0
          countSpans(isExported ? 'exported' : 'failed', spans.length)
          if (isExported) report.exported()
          else report.failed(result, spans.length)
          done(result)
        }),
      shutdown: () => exporter.shutdown(),
    }
    this.#inner = new BatchSpanProcessor({
      exporter: counted,
      maxQueueSize: MOST_WAITING,
      maxExportBatchSize: BATCH,
      scheduledDelayMillis: DELAY_MS,
      exportTimeoutMillis: 2 * EXPORT_MS,
    })
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting >= MOST_WAITING) {
      countSpans('dropped', 1)
      return
    }
    this.#waiting++
    this.#inner.onEnd(span)
  }

  forceFlush = (): Promise<void> => this.#inner.forceFlush()
  shutdown = (): Promise<void> => this.#inner.shutdown()
}

/** Random ids, except for the span that is being started with ids of its own. */
class Ids implements IdGenerator {
  readonly #random = new RandomIdGenerator()
  next: SpanRef | null = null

  generateTraceId = (): string => this.next?.traceId ?? this.#random.generateTraceId()
  generateSpanId = (): string => this.next?.spanId ?? this.#random.generateSpanId()
}

/** Wall times from the monotonic clock, which has fractions. It follows the system clock when that is set. */
function createTimes(): Pick<Spans, 'now' | 'timeOf'> {
  let offset = performance.timeOrigin
  const timeOf = (monotonic: number): number => {
    const present = systemClock.now() - performance.now()
    if (Math.abs(present - offset) > 2) offset = present
    return offset + monotonic
  }
  return { now: () => timeOf(performance.now()), timeOf }
}

const contextOf = ({ traceId, spanId }: SpanRef) => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED })

const under = (parent: SpanRef | null): Context =>
  parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextOf(parent))

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT }

/** `name`: of the process. */
export function createSpans(
  name: string,
  { url, sampleMillionths }: TraceExport,
  logger: Pick<Logger, 'info' | 'warn'>,
): Spans {
  const exporter = new OTLPTraceExporter({
    url,
    timeoutMillis: EXPORT_MS,
    concurrencyLimit: MOST_WAITING / BATCH,
  })
  const ids = new Ids()
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.namespace': 'clearbatch',
      'service.name': name,
      'service.instance.id': `${hostname()}-${process.pid}`,
    }),
    idGenerator: ids,
    sampler: new AlwaysOnSampler(),
    spanLimits: LIMITS,
    spanProcessors: [new BoundedProcessor(exporter, new OutageReport(logger))],
  })
  const tracer = provider.getTracer('clearbatch')
  const ratio = sampleMillionths / MILLION
  const times = createTimes()

  function begin({ name, kind, startedAt, parent, own, links, attributes }: SpanStart) {
    ids.next = own ?? null
    const options = {
      ...(kind && { kind: KINDS[kind] }),
      ...(links && { links: links.map((link) => ({ context: contextOf(link) })) }),
      attributes: attributes as Record<string, string>,
      startTime: startedAt,
    }
    const span = tracer.startSpan(name, options, under(parent))
    ids.next = null
    const end = (at: number, error?: SpanError): void => {
      if (error !== undefined) span.setAttribute('error.type', error.code)
      if (error?.isFault) span.setStatus({ code: SpanStatusCode.ERROR, message: error.code })
      span.end(Math.max(at, startedAt))
    }
    const { traceId, spanId } = span.spanContext()
    return { traceId, spanId, end }
  }

  return {
    ...times,
    isSampled: () => Math.random() < ratio,
    start(start) {
      const { traceId, spanId, end } = begin(start)
      return { traceId, spanId, end: (error) => end(times.now(), error) }
    },
    add({ endedAt, error, ...start }: FinishedSpan) {
      const { traceId, spanId, end } = begin(start)
      end(endedAt, error)
      return { traceId, spanId }
    },
    async stop() {
      let late: NodeJS.Timeout | undefined
      const waited = new Promise<void>((resolve) => {
        late = setTimeout(resolve, STOP_MS)
      })
      await Promise.race([provider.shutdown().catch(() => {}), waited])
      clearTimeout(late)
    },
  }
}
