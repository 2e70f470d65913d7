/** One HTTP exchange, and the rules for asking again. */
import { ClearbatchError, CODES, errorOfAnswer, errorOfSilence } from './errors.ts'

export interface HttpOptions {
  readonly baseUrl: string
  /** `Key <api key>` or `Bearer <token>`; without it only public endpoints answer. */
  readonly authorization?: string
  /** How long one request may take. Bookmarked reads wait up to 5 s at the server. */
  readonly timeoutMs?: number
  /** How long all tries of one call may take together. */
  readonly budgetMs?: number
  readonly fetch?: typeof fetch
  readonly sleep?: (ms: number) => Promise<void>
  readonly now?: () => number
}

export interface Request {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  /** Sending it twice has the effect of sending it once: then an unknown outcome may be retried. */
  readonly repeatable: boolean
}

export interface Http {
  send<Answer>(request: Request): Promise<Answer>
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

export function createHttp(options: HttpOptions): Http {
  const sleep = options.sleep ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms)))
  const now = options.now ?? Date.now
  return {
    async send<Answer>(request: Request): Promise<Answer> {
      const deadline = now() + (options.budgetMs ?? 15_000)
      for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
        const answer = await exchange(options, request)
        if (!(answer instanceof ClearbatchError)) return answer.body as Answer
        const wait = answer.retryAfterMs ?? pause
        if (!mayRetry(request, answer) || now() + wait > deadline) throw answer
        await sleep(wait)
      }
    },
  }
}

/** A stale bookmark never heals; an unknown outcome may be asked again only where that cannot act twice. */
export function mayRetry(request: Request, error: ClearbatchError): boolean {
  if (error.code === CODES.stale || !error.retryable) return false
  return request.repeatable || error.outcome === 'not_placed'
}

async function exchange(
  options: HttpOptions,
  request: Request,
): Promise<{ body: unknown } | ClearbatchError> {
  try {
    const response = await (options.fetch ?? fetch)(urlOf(options.baseUrl, request), {
      method: request.method,
      headers: headersOf(options, request),
      signal: AbortSignal.timeout(options.timeoutMs ?? 10_000),
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
    })
    const text = await response.text()
    const body = parse(text)
    if (response.ok) return { body }
    return errorOfAnswer(response.status, body, response.headers.get('retry-after'))
  } catch (cause) {
    return errorOfSilence(cause)
  }
}

function urlOf(baseUrl: string, { path, query = {} }: Request): URL {
  const url = new URL(`${baseUrl.replace(/\/$/, '')}${path}`)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, String(value))
  return url
}

const headersOf = ({ authorization }: HttpOptions, { body }: Request): Record<string, string> => ({
  accept: 'application/json',
  ...(authorization === undefined ? {} : { authorization }),
  ...(body === undefined ? {} : { 'content-type': 'application/json' }),
})

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
