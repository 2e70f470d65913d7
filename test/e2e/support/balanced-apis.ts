/** Several apis as one: requests go to each in turn, as by a proxy with health checks. */
import { setTimeout as sleep } from 'node:timers/promises'

const CHECK_MS = 100
const CHECK_LIMIT_MS = 2_000

/** An answer that is no success. */
export interface Refusal {
  readonly path: string
  readonly status: number
  readonly text: string
}

export class BalancedApis {
  /** Answers to commands that were not executed. */
  readonly refusals: Refusal[] = []
  /** Requests that were repeated on another api, because a connection was refused or closed. */
  repeated = 0
  readonly #apis: readonly string[]
  readonly #stopping = new AbortController()
  readonly #checks: Promise<unknown>
  #ready: readonly string[]
  #turn = 0

  constructor(apis: readonly string[]) {
    this.#apis = apis
    this.#ready = apis
    this.#checks = this.#check()
  }

  /** For clients: the host of a URL is replaced. */
  readonly fetch: typeof fetch = async (input, init) => {
    const { pathname, search } = new URL(String(input))
    const first = this.#next(null)
    try {
      return await this.#send(first, `${pathname}${search}`, init)
    } catch (error) {
      // Commands have an identity, by which the exchange recognises the repetition.
      this.repeated++
      const other = this.#next(first)
      if (other === first) throw error
      return this.#send(other, `${pathname}${search}`, init)
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#checks
  }

  async #send(api: string, path: string, init?: RequestInit): Promise<Response> {
    const response = await fetch(`${api}${path}`, init)
    if (response.status >= 400 && init?.method !== 'GET')
      this.refusals.push({ path, status: response.status, text: await response.clone().text() })
    return response
  }

  #next(except: string | null): string {
    const some = this.#ready.filter((api) => api !== except)
    const choice = some.length > 0 ? some : this.#apis
    return choice[this.#turn++ % choice.length] as string
  }

  async #check(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const ready = await Promise.all(this.#apis.map(async (api) => ((await isReady(api)) ? api : null)))
      this.#ready = ready.filter((api) => api !== null)
      await sleep(CHECK_MS)
    }
  }
}

const isReady = (api: string): Promise<boolean> =>
  fetch(`${api}/health/ready`, { signal: AbortSignal.timeout(CHECK_LIMIT_MS) }).then(
    ({ ok }) => ok,
    () => false,
  )
