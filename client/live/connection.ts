/** An authenticated connection to the live feed. It reconnects with a jittered delay until it is closed. */
import { type Authorization, Credential } from '../authorization.ts'
import { ClearbatchError, errorOfResponse, errorWithoutResponse } from '../errors.ts'
import type { Result } from './messages.ts'
import { openSocket } from './web-socket.ts'

export interface ConnectionOptions {
  readonly baseUrl: string
  /**
   * `Key <api key>`, `Bearer <token>`, or a function that returns either; if absent, only public topics are accessible.
   */
  readonly authorization?: Authorization | undefined
}

export interface ConnectionHandlers {
  /** Operations can be sent. No message of an earlier connection follows. */
  connected(): void
  disconnected(): void
  /** Called for every message that is not the answer to a call. */
  message(message: Record<string, unknown>): void
  /** The exchange refused the credential; there is no further connection. */
  refused(error: ClearbatchError): void
}

type Id = string | number

type Timer = ReturnType<typeof setTimeout>

interface Call {
  readonly resolve: (result: Result) => void
  readonly reject: (error: ClearbatchError) => void
  readonly timer: Timer
}

const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 10_000
/** Longest time without a message: several heartbeats of the exchange. */
const SILENCE_MS = 20_000
const AUTH = 'auth'

export class LiveConnection {
  readonly #options: ConnectionOptions
  readonly #handlers: ConnectionHandlers
  readonly #credential: Credential
  readonly #calls = new Map<Id, Call>()
  #socket: WebSocket | null = null
  #isConnected = false
  #isClosed = false
  /** Credential sent last; undefined if none was sent. */
  #authorization: string | undefined
  /** True if a credential was renewed after a refusal and none has been accepted since. */
  #isRenewed = false
  #ids = 0
  #attempts = 0
  /** Delay that the exchange requested in `server_shutdown`. */
  #delayMs: number | null = null
  #timer: Timer | undefined
  #lastMessageAt = 0

  constructor(options: ConnectionOptions, handlers: ConnectionHandlers) {
    this.#options = options
    this.#handlers = handlers
    this.#credential = new Credential(options.authorization)
    this.#connect()
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#drop()
  }

  /**
   * Ends the connection like a network failure; the client reconnects. Returns false if there is no connection.
   */
  interrupt(): boolean {
    if (this.#isClosed || this.#socket === null) return false
    this.#drop()
    this.#connectLater()
    return true
  }

  /** Sends an operation without waiting for its answer. Returns its id. */
  send(op: string, fields: object): Id {
    const id = ++this.#ids
    this.#socket?.send(JSON.stringify({ op, id, ...fields }))
    return id
  }

  /** Sends an operation and returns its answer. Throws `ClearbatchError`; without a connection the operation is not sent. */
  call(op: string, fields: object, timeoutMs: number): Promise<Result> {
    if (!this.#isConnected) return Promise.reject(errorWithoutResponse(new Error('not connected')))
    return new Promise((resolve, reject) => {
      const id = this.send(op, fields)
      const timer = setTimeout(() => {
        this.#calls.delete(id)
        reject(errorWithoutResponse(new DOMException('no answer', 'TimeoutError')))
      }, timeoutMs)
      this.#calls.set(id, { resolve, reject, timer })
    })
  }

  // ------------------------------------------------------------------ the socket

  #connect(): void {
    this.#lastMessageAt = Date.now()
    this.#watch()
    const url = `${this.#options.baseUrl.replace(/\/$/, '').replace(/^http/, 'ws')}/v0/ws`
    const attempt = this.#timer
    openSocket(url, (socket) => {
      // The attempt may have ended while the implementation was loaded.
      if (this.#isClosed || attempt !== this.#timer) socket.close()
      else this.#use(socket)
    })
  }

  #use(socket: WebSocket): void {
    this.#socket = socket
    socket.onopen = () => void this.#opened(socket)
    socket.onmessage = ({ data }) => {
      if (socket === this.#socket) this.#receive(String(data))
    }
    // A failed connection also fires `onclose`.
    socket.onerror = () => {}
    socket.onclose = () => {
      if (socket !== this.#socket) return
      this.#drop()
      this.#connectLater()
    }
  }

  async #opened(socket: WebSocket): Promise<void> {
    const authorization = await this.#credential.value().catch(errorWithoutResponse)
    if (socket !== this.#socket) return
    if (authorization instanceof ClearbatchError) {
      this.interrupt()
      return
    }
    this.#authorization = authorization
    if (authorization === undefined) this.#begin()
    else socket.send(JSON.stringify({ op: AUTH, id: AUTH, authorization }))
  }

  #begin(): void {
    this.#isConnected = true
    this.#isRenewed = false
    this.#attempts = 0
    this.#handlers.connected()
  }

  /** Replaces a silent connection: its end may never be reported. */
  #watch(): void {
    this.#timer = setTimeout(
      () => {
        if (Date.now() - this.#lastMessageAt < SILENCE_MS) this.#watch()
        else this.interrupt()
      },
      this.#lastMessageAt + SILENCE_MS - Date.now(),
    )
  }

  #drop(): void {
    const [socket, wasConnected] = [this.#socket, this.#isConnected]
    this.#socket = null
    this.#isConnected = false
    clearTimeout(this.#timer)
    socket?.close()
    if (wasConnected) this.#handlers.disconnected()
    for (const [id, call] of this.#calls)
      this.#settle(id, call, errorWithoutResponse(new Error('disconnected')))
  }

  /** The delay doubles with each failed attempt; its jitter keeps clients from connecting at the same time. */
  #connectLater(): void {
    if (this.#isClosed) return
    const longest = Math.min(FIRST_DELAY_MS * 2 ** this.#attempts++, LONGEST_DELAY_MS)
    const delay = this.#delayMs ?? longest * (0.5 + Math.random() / 2)
    this.#delayMs = null
    this.#timer = setTimeout(() => this.#connect(), delay)
  }

  // ------------------------------------------------------------------ messages

  #receive(text: string): void {
    this.#lastMessageAt = Date.now()
    const message = JSON.parse(text) as Record<string, unknown>
    const { type, id, data } = message
    if (type === 'server_shutdown')
      this.#delayMs = (data as { reconnect_after_ms: number }).reconnect_after_ms
    if (id === AUTH) void this.#authenticated(message)
    else {
      const call = this.#calls.get(id as Id)
      if (call === undefined) this.#handlers.message(message)
      else this.#settle(id as Id, call, type === 'error' ? errorOf(message) : (message as unknown as Result))
    }
  }

  async #authenticated(message: Record<string, unknown>): Promise<void> {
    if (message.type === 'result') {
      this.#begin()
      return
    }
    const error = errorOf(message)
    if (error.retryable || (await this.#renewed(error))) this.interrupt()
    else {
      this.close()
      this.#handlers.refused(error)
    }
  }

  /** Whether the next connection has another credential than the refused one. */
  async #renewed({ status }: ClearbatchError): Promise<boolean> {
    if (status !== 401 || this.#isRenewed) return false
    this.#isRenewed = await this.#credential.renew(this.#authorization).catch(() => true)
    return this.#isRenewed
  }

  #settle(id: Id, call: Call, outcome: Result | ClearbatchError): void {
    this.#calls.delete(id)
    clearTimeout(call.timer)
    if (outcome instanceof Error) call.reject(outcome)
    else call.resolve(outcome)
  }
}

/** The error of a message, as over REST. */
export function errorOf({ data }: Record<string, unknown>): ClearbatchError {
  const { status, retry_after, ...body } = data as { status: number; retry_after?: number }
  return errorOfResponse(status, body, retry_after === undefined ? null : String(retry_after))
}
