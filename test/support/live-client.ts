/** A client of the live feed on a real socket. Each message that it receives must conform to the description of the feed. */
import { WebSocket } from 'ws'
import { type AsyncApi, messageValidator } from './async-api.ts'
import { PATIENCE } from './patience.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages by name
export type LiveMessage = any

export interface Closed {
  readonly code: number
  readonly reason: string
}

export interface LiveOptions {
  readonly headers?: Record<string, string>
  /** Answers pings; default true. */
  readonly autoPong?: boolean
}

const WAIT_MS = 10_000 * PATIENCE

type Validate = ReturnType<typeof messageValidator>

/** By base URL: the description of a running api does not change. */
const validators = new Map<string, Promise<Validate>>()

const validatorOf = (base: string): Promise<Validate> => {
  const known = validators.get(base)
  if (known !== undefined) return known
  const fetched = fetch(`${base}/v0/asyncapi.json`).then(async (answer) =>
    messageValidator((await answer.json()) as AsyncApi),
  )
  validators.set(base, fetched)
  return fetched
}

export class LiveClient {
  readonly socket: WebSocket
  readonly messages: LiveMessage[] = []
  readonly closed: Promise<Closed>
  #taken = 0
  #ids = 0
  #wake: (() => void)[] = []

  /** What is wrong with messages received so far. */
  readonly violations: string[] = []

  private constructor(socket: WebSocket, validate: Validate) {
    this.socket = socket
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString())
      this.messages.push(message)
      this.violations.push(...validate(message))
      for (const wake of this.#wake.splice(0)) wake()
    })
    socket.on('error', () => {})
    this.closed = new Promise((resolve) =>
      socket.on('close', (code, reason) => {
        resolve({ code, reason: reason.toString() })
        for (const wake of this.#wake.splice(0)) wake()
      }),
    )
  }

  /** Resolves with the client once it is connected; rejects with the answer to the request that was not upgraded. */
  static async open(base: string, { headers = {}, autoPong = true }: LiveOptions = {}): Promise<LiveClient> {
    const validate = await validatorOf(base)
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`${base.replace(/^http/, 'ws')}/v0/ws`, { headers, autoPong })
      const client = new LiveClient(socket, validate)
      socket.on('open', () => resolve(client))
      socket.on('unexpected-response', (_request, response) => {
        let body = ''
        response.on('data', (chunk: Buffer) => {
          body += chunk
        })
        response.on('end', () => {
          const { message, details } = JSON.parse(body)
          reject(Object.assign(new Error(message), { status: response.statusCode, details }))
          socket.terminate()
        })
      })
    })
  }

  raw(text: string | Buffer): void {
    this.socket.send(text)
  }

  /** Sends an operation and returns its id. */
  send(op: string, fields: object = {}): string {
    const id = `op-${++this.#ids}`
    this.raw(JSON.stringify({ op, id, ...fields }))
    return id
  }

  /** Sends an operation and waits for its first answer. */
  async call(op: string, fields: object = {}): Promise<LiveMessage> {
    const id = this.send(op, fields)
    return this.find((message) => message.id === id)
  }

  /** The first message that matches, of those received so far or from now on. */
  async find(matches: (message: LiveMessage) => boolean): Promise<LiveMessage> {
    const deadline = Date.now() + WAIT_MS
    for (let at = 0; ; at++) {
      while (at >= this.messages.length) await this.#more(deadline)
      if (matches(this.messages[at])) return this.messages[at]
    }
  }

  /** The next message that no earlier call of `next` has returned. */
  async next(): Promise<LiveMessage> {
    const deadline = Date.now() + WAIT_MS
    while (this.#taken >= this.messages.length) await this.#more(deadline)
    return this.messages[this.#taken++]
  }

  async #more(deadline: number): Promise<void> {
    const rest = deadline - Date.now()
    if (rest <= 0 || this.socket.readyState > WebSocket.CLOSING)
      throw new Error(`no further message; received ${JSON.stringify(this.messages).slice(0, 2_000)}`)
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake.push(resolve)
      timer = setTimeout(resolve, rest)
    })
    clearTimeout(timer)
  }

  async close(): Promise<Closed> {
    this.socket.close()
    const closed = await this.closed
    if (this.violations.length > 0) throw new Error(this.violations.join('\n'))
    return closed
  }
}
