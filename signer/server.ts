/** The HTTP interface of a signer: one route, for the publisher only. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { FeedId } from '../domain/prices/report-hash.ts'
import type { Millis } from '../domain/units.ts'
import { boundedText } from '../service/bounded-text.ts'
import type { Listener } from '../service/environment.ts'
import { equalText } from '../service/equal-text.ts'
import { bind, type HttpListener, INTERNAL_SERVER } from '../service/http-listener.ts'
import type { Logger } from '../service/logger.ts'
import type { ReportKey, SigningAnswer, SigningRequest } from '../service/report-key.ts'

export interface SignerServerOptions {
  readonly listener: Listener
  readonly secret: string
  readonly key: ReportKey
  readonly logger: Logger
  readonly onAnswers: (answers: readonly SigningAnswer[]) => void
}

const MOST_BYTES = 1_000_000
/** Three feeds of more than 300 markets. */
const MOST_REPORTS = 1_000

/** An answer other than signatures. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Resolves when the port is bound. */
export async function serveSigner(options: SignerServerOptions): Promise<HttpListener> {
  const server = createServer(INTERNAL_SERVER, (request, response) => {
    answer(request, options).then(
      (body) => respond(response, 200, body),
      (error: unknown) => {
        if (error instanceof Refusal) return respond(response, error.status, { message: error.message })
        options.logger.error({ err: error }, 'signing failed')
        respond(response, 500, { message: 'internal error' })
      },
    )
  })
  return bind(server, options.listener)
}

async function answer(
  request: IncomingMessage,
  { secret, key, onAnswers }: SignerServerOptions,
): Promise<{ answers: readonly SigningAnswer[] }> {
  if (request.method !== 'POST' || request.url !== '/v1/sign')
    throw new Refusal(404, 'expected POST /v1/sign')
  if (!equalText(request.headers.authorization ?? '', `Bearer ${secret}`))
    throw new Refusal(401, 'expected the shared secret as a bearer token')
  const answers = await key.sign(parseReports(await bodyOf(request)))
  onAnswers(answers)
  return { answers }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const text = await boundedText(request as AsyncIterable<Buffer>, MOST_BYTES)
  if (text === null) throw new Refusal(413, `expected at most ${MOST_BYTES} bytes`)
  return text
}

function parseReports(text: string): SigningRequest[] {
  let body: { readonly reports?: unknown } | null = null
  try {
    body = JSON.parse(text)
  } catch {
    throw new Refusal(400, 'the body is not JSON')
  }
  const reports = body?.reports
  if (!Array.isArray(reports) || reports.length > MOST_REPORTS)
    throw new Refusal(400, `expected a list of at most ${MOST_REPORTS} reports`)
  return reports.map(parseReport)
}

function parseReport(report: unknown, index: number): SigningRequest {
  const { feed_id, price, observed_at } = (report ?? {}) as Readonly<Record<string, unknown>>
  const isValid =
    typeof feed_id === 'string' &&
    /^0x[0-9a-f]{64}$/.test(feed_id) &&
    typeof price === 'string' &&
    /^-?\d{1,38}$/.test(price) &&
    Number.isSafeInteger(observed_at)
  if (!isValid)
    throw new Refusal(
      400,
      `report ${index} has another form: expected feed_id (0x and 64 lower case hexadecimal digits), price (a whole number of at ` +
        'most 38 digits, as text) and observed_at (milliseconds)',
    )
  return {
    feedId: feed_id as FeedId,
    reading: { price: BigInt(price as string), observedAt: observed_at as Millis },
  }
}

function respond(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
