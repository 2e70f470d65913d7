/** A collector of spans: an HTTP server that decodes OTLP JSON. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CollectedSpan {
  readonly process: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  /** Milliseconds. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
}

interface OtlpValue {
  readonly stringValue?: string
  readonly intValue?: number
  readonly boolValue?: boolean
  readonly arrayValue?: { readonly values?: readonly OtlpValue[] }
}

type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[]

interface OtlpSpan extends Omit<CollectedSpan, 'attributes' | 'links' | 'startedAt' | 'endedAt' | 'process'> {
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes?: OtlpAttributes
  readonly links?: CollectedSpan['links']
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpAttributes }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

const plainValue = ({ stringValue, intValue, boolValue, arrayValue }: OtlpValue): unknown =>
  stringValue ?? intValue ?? boolValue ?? (arrayValue?.values ?? []).map(plainValue)

const attributesOf = (attributes: OtlpAttributes = []): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]))

const millisOf = (nanos: string): number => Number(BigInt(nanos) / 1000n) / 1000

const spanOf = (process: string, span: OtlpSpan): CollectedSpan => ({
  process,
  traceId: span.traceId,
  spanId: span.spanId,
  name: span.name,
  startedAt: millisOf(span.startTimeUnixNano),
  endedAt: millisOf(span.endTimeUnixNano),
  attributes: attributesOf(span.attributes),
  links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
  ...(span.parentSpanId !== undefined && { parentSpanId: span.parentSpanId }),
})

const spansOf = ({ resourceSpans }: OtlpRequest): CollectedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const process = String(attributesOf(resource.attributes)['service.name'])
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => spanOf(process, span)))
  })

/** How the collector answers: `silent` never does. */
export type CollectorMode = 'accept' | 'refuse' | 'silent'

export class OtlpCollector {
  readonly spans: CollectedSpan[] = []
  /** Bodies as they were sent. */
  readonly bodies: string[] = []
  mode: CollectorMode = 'accept'
  readonly #server = createServer((request, response) => void this.#receive(request, response))

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector()
    collector.#server.listen(0, '127.0.0.1')
    await once(collector.#server, 'listening')
    return collector
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`
  }

  named(name: string): readonly CollectedSpan[] {
    return this.spans.filter((span) => span.name === name)
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    if (this.mode === 'silent') return
    if (this.mode === 'accept') {
      this.bodies.push(body)
      this.spans.push(...spansOf(JSON.parse(body) as OtlpRequest))
    }
    response.writeHead(this.mode === 'accept' ? 200 : 400, { 'content-type': 'application/json' }).end('{}')
  }
}
