/** Sends HTTP requests to the exchange, and retries requests that are safe to retry. */
import { type Authorization, Credential } from './authorization.ts'
import { ClearbatchError, CODES, errorOfResponse, errorWithoutResponse } from './errors.ts'
import { CommandAttempts, OutcomeMemory } from './outcomes.ts'

export interface HttpOptions {
  readonly baseUrl: string
  /**
   * `Key <api key>`, `Bearer <token>`, or a function that returns either; without it, only public endpoints
   * are accessible.
   */
  readonly authorization?: Authorization | undefined
  /** Time limit of one attempt. The server delays a bookmarked read by up to 5 s. */
  readonly timeoutMs?: number
  /** Time limit of all attempts of one request together. */
  readonly budgetMs?: number
  /** Known outcomes of commands; shared with the live feed, which may send the same commands. */
  readonly outcomes?: OutcomeMemory
  readonly fetch?: typeof fetch
  readonly sleep?: (ms: number) => Promise<void>
  readonly now?: () => number
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Query
  readonly body?: unknown
  /**
   * True if sending the request twice has the effect of sending it once; it is then retried after an unknown
   * outcome.
   */
  readonly idempotent: boolean
  /**
   * Identity by which the exchange recognises the command, so that its outcome is remembered. See `IDENTITY`.
   */
  readonly identity?: string | undefined
  /** Media type of the response; JSON by default. Other types are returned as text. */
  readonly accept?: string
  /** True if the response is a `FileResponse`. */
  readonly isFile?: true
  /** Replaces the session's timeout of one attempt, for long responses. */
  readonly timeoutMs?: number
  /** Replaces the session's budget of all attempts together. */
  readonly budgetMs?: number
}

export interface FileResponse {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly etag: string | null
}

export interface HttpSession {
  /** Returns the parsed body of the first successful response. Throws `ClearbatchError`. */
  send<Response>(request: HttpRequest): Promise<Response>
  get<Response>(path: string, query?: Query): Promise<Response>
  /** Requests a file. `budgetMs` limits the time to create and send it. */
  file(path: string, budgetMs: number): Promise<FileResponse>
  /** Sends an idempotent command. */
  post<Response>(path: string, body: unknown, identity?: string): Promise<Response>
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

export function createHttpSession(options: HttpOptions): HttpSession {
  const sleep = options.sleep ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms)))
  const now = options.now ?? Date.now
  const outcomes = options.outcomes ?? new OutcomeMemory()
  const credential = new Credential(options.authorization)

  async function send<Response>(request: HttpRequest): Promise<Response> {
    const deadline = now() + (request.budgetMs ?? options.budgetMs ?? 15_000)
    const attempts = new CommandAttempts(outcomes, request.identity)
    let isRenewed = false
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      const authorization = await credential.value()
      const result = await attempt(options, request, authorization)
      if (!(result instanceof ClearbatchError)) {
        attempts.succeeded()
        return result.body as Response
      }
      if (result.status === 401 && !isRenewed && (await credential.renew(authorization))) {
        isRenewed = true
        continue
      }
      const error = attempts.failed(result)
      const wait = error.retryAfterMs ?? pause
      if (!mayRetry(request, error) || now() + wait > deadline) throw error
      await sleep(wait)
    }
  }

  return {
    send,
    get: (path, query = {}) => send({ method: 'GET', path, query, idempotent: true }),
    file: (path, budgetMs) =>
      send({
        method: 'GET',
        path,
        idempotent: true,
        accept: '*/*',
        isFile: true,
        timeoutMs: budgetMs,
        budgetMs,
      }),
    post: (path, body, identity) => send({ method: 'POST', path, body, idempotent: true, identity }),
  }
}

/**
 * Whether a retry can help.
 * A stale bookmark stays stale. After an unknown outcome only an idempotent request is retried.
 */
export function mayRetry(request: Pick<HttpRequest, 'idempotent'>, error: ClearbatchError): boolean {
  if (error.code === CODES.stale || !error.retryable) return false
  return request.idempotent || error.outcome === 'not_placed' || error.outcome === 'not_read'
}

async function attempt(
  options: HttpOptions,
  request: HttpRequest,
  authorization: string | undefined,
): Promise<{ body: unknown } | ClearbatchError> {
  try {
    const response = await (options.fetch ?? fetch)(urlOf(options.baseUrl, request), {
      method: request.method,
      headers: headersOf(authorization, request),
      signal: AbortSignal.timeout(request.timeoutMs ?? options.timeoutMs ?? 10_000),
      body: request.body === undefined ? null : JSON.stringify(request.body),
    })
    if (request.isFile && response.ok) {
      const bytes = new Uint8Array(await response.arrayBuffer())
      return { body: { bytes, etag: response.headers.get('etag') } }
    }
    const body = parse(await response.text())
    if (response.ok) return { body }
    return errorOfResponse(response.status, body, response.headers.get('retry-after'))
  } catch (cause) {
    return errorWithoutResponse(cause)
  }
}

function urlOf(baseUrl: string, { path, query = {} }: HttpRequest): URL {
  const url = new URL(`${baseUrl.replace(/\/$/, '')}${path}`)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, String(value))
  return url
}

const headersOf = (
  authorization: string | undefined,
  { body, accept = 'application/json' }: HttpRequest,
): Record<string, string> => ({
  accept,
  ...(authorization === undefined ? {} : { authorization }),
  ...(body === undefined ? {} : { 'content-type': 'application/json' }),
})

/** Parsed JSON, or the text itself if it is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
