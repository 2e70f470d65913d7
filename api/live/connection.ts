/** One connection of a client: reads its operations, sends their answers and the frames of its topics. */
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from '@fastify/websocket'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Authenticate } from '../auth/authenticator.ts'
import type { Caller } from '../auth/caller.ts'
import { checkTimeout } from '../cancel-switch/cancel-switch.ts'
import type { ConnectionSwitches } from '../cancel-switch/connection-switches.ts'
import { ApiError, errorBody } from '../errors.ts'
import type { Access } from '../http/access.ts'
import { echoText } from '../http/echo.ts'
import { catalogued } from '../http/errors.ts'
import type { OrderCommands } from '../order-entry/order-commands.ts'
import { type MessagePorts, runMessage } from '../request-spans.ts'
import { isoTime } from '../wire/amounts.ts'
import type { LiveMetrics } from './metrics.ts'
import {
  announce,
  costOfCommand,
  execute,
  type OrderMessage,
  readsOf,
  TOPICS_PER_READ,
  traderOf,
} from './operations.ts'
import { Outbox } from './outbox.ts'
import { type Parsed, parseMessage, UNREAD } from './parse-message.ts'
import type { Frame, Hub, Reader } from './ports.ts'
import { isCommand, type Message } from './schema.ts'
import { CLOSES, type CloseReason, MOST_PENDING, Session, type SessionLimits } from './session.ts'
import { Spending } from './spending.ts'
import { parseTopic } from './topics.ts'

export interface ConnectionPorts extends MessagePorts {
  readonly hub: Hub
  readonly commands: OrderCommands
  readonly authenticate: Authenticate
  readonly switches: ConnectionSwitches
  readonly clock: Clock
  readonly metrics: LiveMetrics
  readonly logger: Logger
  readonly limits: SessionLimits & { readonly subscriptions: number; readonly messagesOfAddress: number }
}

/** The set of connections as one connection uses it. */
export interface Membership {
  /** Makes it a connection of the caller's account. Throws CONNECTION_LIMIT. */
  attach(connection: Connection, caller: Caller): void
  leave(connection: Connection): void
  /** Counts a message of any connection of the address. */
  admitsMessage(ip: string): boolean
  isStopping(): boolean
}

export interface ConnectionParts {
  readonly webSocket: WebSocket
  readonly socket: Socket
  readonly ip: string
  readonly requestId: string
  readonly access: Pick<Access, 'spend' | 'charge'>
  readonly membership: Membership
}

/** Interval at which a client that does not read is looked at before it is sent a snapshot. */
const UNREAD_POLL_MS = 25

/** Bytes of a message whose id is read although it is rejected. */
const SMALL = 1024

type Id = string | number | null
type Accepted = Extract<Parsed, { message: unknown }>

export class Connection implements Reader {
  readonly ip: string
  caller: Caller | null = null
  readonly #ports: ConnectionPorts
  readonly #parts: ConnectionParts
  readonly #session: Session
  readonly #outbox: Outbox
  readonly #spending: Spending
  readonly #topics = new Set<string>()
  #switchId: string | null = null
  #messages = 0
  #requestId = ''
  #pending = 0
  #isOpen = true
  /** The client was asked to wait this long before it connects again. */
  #reconnectAfterMs = 0
  #authenticating: Promise<void> | null = null
  #subscribing: Promise<void> = Promise.resolve()

  constructor(ports: ConnectionPorts, parts: ConnectionParts) {
    this.#ports = ports
    this.#parts = parts
    this.ip = parts.ip
    this.#session = new Session(ports.limits, ports.clock.now())
    const { webSocket, socket } = parts
    this.#spending = new Spending(parts.access, () => ({
      ip: this.ip,
      caller: this.caller,
      log: ports.logger,
    }))
    this.#outbox = new Outbox(webSocket, socket, this.#session, ports.metrics)
    webSocket.on('message', (data: Buffer, isBinary: boolean) => this.#receive(data, isBinary))
    webSocket.on('pong', () => this.#session.sign(ports.clock.now()))
    webSocket.on('close', (code: number) => this.#end(code === 1006 ? 'lost' : 'client'))
    socket.on('drain', () => this.#catchUp(false))
  }

  get subscriptions(): number {
    return this.#topics.size
  }

  get expiresAt(): number | null {
    return this.caller?.expiresAt ?? null
  }

  // ------------------------------------------------------------------ to the client

  /** Sends all frames of one moment together. */
  send(frames: readonly Frame[]): void {
    if (this.#isOpen && !this.#outbox.sendFrames(frames)) this.close('slow')
  }

  #sendText(text: string): void {
    if (this.#isOpen && !this.#outbox.sendText(text)) this.close('slow')
  }

  #sendMessage(message: object): void {
    this.#sendText(JSON.stringify(message))
  }

  get #now(): string {
    return isoTime(this.#ports.clock.now())
  }

  #answer(id: Id, op: string, data: unknown): void {
    this.#sendMessage({ type: 'result', id, op, ts: this.#now, data })
  }

  #reject(id: Id, op: string | null, failure: unknown, topic?: string): void {
    const error = catalogued(failure, this.#ports.logger)
    const body = errorBody(error, this.#requestId, op !== null && !isCommand(op))
    const retry = error.retryAfter === undefined ? {} : { retry_after: Number(error.retryAfter) }
    const data = { status: error.status, ...body, ...retry }
    this.#sendMessage({ type: 'error', id, ...(topic && { topic: echoText(topic) }), ts: this.#now, data })
  }

  /** Requests what was left out, once the client has read enough. */
  #catchUp(all: boolean): void {
    if (!this.#isOpen) return
    for (const topic of this.#outbox.takeGaps(all)) this.#ports.hub.refresh(this, topic)
  }

  // ------------------------------------------------------------------ from the client

  #receive(data: Buffer, isBinary: boolean): void {
    if (!this.#isOpen) return
    const admission = this.#session.admit(this.#ports.clock.now())
    this.#requestId = `${this.#parts.requestId}-${++this.#messages}`
    if (admission === 'close') {
      this.close('flood')
      return
    }
    const refusal = this.#refusalOf(admission)
    // A large message that is not admitted is not worth its parsing.
    const parsed =
      isBinary || (refusal !== null && data.length > SMALL) ? UNREAD : parseMessage(data.toString())
    this.#ports.metrics.received(parsed.op ?? 'unknown')
    if (refusal !== null) this.#reject(parsed.id, parsed.op, refusal.beforeReading())
    else if (!('error' in parsed))
      void runMessage(this.#ports, this.#requestId, parsed.op, () => this.#run(parsed))
    else if (this.#session.countMalformed()) this.close('malformed')
    else this.#reject(parsed.id, parsed.op, parsed.error.beforeReading())
  }

  #refusalOf(admission: 'accept' | 'reject'): ApiError | null {
    const { clock, limits } = this.#ports
    const { membership } = this.#parts
    if (membership.isStopping()) return new ApiError('SHUTTING_DOWN', {}, '1')
    const retryAfter = () => String(Math.ceil(this.#session.resetMs(clock.now()) / 1000))
    const limited = (scope: string, most: number): ApiError => {
      const expected = `at most ${most} messages in ${limits.windowMs / 1000} s`
      return new ApiError('RATE_LIMITED', { scope, expected }, retryAfter())
    }
    if (admission === 'reject') return limited('connection', limits.messages)
    if (!membership.admitsMessage(this.ip)) return limited('address', limits.messagesOfAddress)
    if (this.#pending < MOST_PENDING) return null
    const expected = `at most ${MOST_PENDING} unanswered operations`
    return new ApiError('RATE_LIMITED', { scope: 'connection', expected }, '1')
  }

  async #run({ id, op, message }: Accepted): Promise<void> {
    this.#pending++
    try {
      // The operations after `auth` are those of its account.
      if (message.op !== 'auth' && this.#authenticating !== null) await this.#authenticating
      await this.#operate(message)
    } catch (error) {
      this.#reject(id, op, error)
    } finally {
      this.#pending--
    }
  }

  async #operate(message: Message): Promise<void> {
    const { id, op } = message
    switch (message.op) {
      case 'ping':
        return this.#answer(id, op, {})
      case 'auth':
        return this.#inTurn('auth', () => this.#authenticate(message))
      case 'subscribe':
        return this.#inTurn('topics', () => this.#subscribe(message))
      case 'unsubscribe':
        return this.#inTurn('topics', async () => this.#unsubscribe(message))
      case 'cancel_on_disconnect':
        return this.#guard(message)
      default:
        return this.#command(message)
    }
  }

  async #command(message: OrderMessage): Promise<void> {
    const { id, op } = message
    const { commands } = this.#ports
    const caller = traderOf(op, this.caller)
    const arrival = announce(commands, caller, op)
    try {
      await this.#spending.spend(op)
      const { json, readAfter } = await execute(commands, caller, message, arrival ?? undefined)
      const head = JSON.stringify({ type: 'result', id, op, ts: this.#now, read_after: readAfter })
      this.#spending.charge(op, costOfCommand(message, json))
      // Nothing that may fail follows: its error would be a second answer.
      this.#sendText(`${head.slice(0, -1)},"data":${json}}`)
    } catch (error) {
      throw this.#spending.refused(message, error)
    } finally {
      arrival?.answered()
    }
  }

  /** Changes of the credential, and of the topics, happen one after the other. */
  async #inTurn(what: 'auth' | 'topics', work: () => Promise<void>): Promise<void> {
    const before = what === 'auth' ? (this.#authenticating ?? Promise.resolve()) : this.#subscribing
    const own = before.then(work)
    const settled = own.catch(() => {})
    if (what === 'topics') this.#subscribing = settled
    else {
      this.#authenticating = settled
      void settled.then(() => {
        if (this.#authenticating === settled) this.#authenticating = null
      })
    }
    return own
  }

  async #authenticate({ id, op, authorization }: Message<'auth'>): Promise<void> {
    await this.#spending.spend(op)
    const caller = await this.#ports.authenticate({ authorization, address: this.ip })
    if (this.caller !== null && this.caller.userId !== caller.userId)
      throw new ApiError('CONNECTION_IN_USE', { field: 'authorization' })
    if (!this.#isOpen) return
    this.#parts.membership.attach(this, caller)
    const { userId: user_id, scope, credential, expiresAt } = caller
    const expires_at = expiresAt === null ? null : isoTime(expiresAt)
    this.#answer(id, op, { user_id, scope, credential, expires_at })
  }

  async #subscribe(message: Message<'subscribe'>): Promise<void> {
    await this.#spending.spend('subscribe')
    let free = TOPICS_PER_READ
    for (const name of new Set(message.topics)) {
      if (!this.#isOpen) return
      try {
        const isResumed = Object.hasOwn(message.since ?? {}, name)
        free -= isResumed ? TOPICS_PER_READ : 1
        if (free < 0) {
          // Earlier topics of this message may have used up the limit.
          await this.#spending.spend('subscribe')
          free += TOPICS_PER_READ
        }
        await this.#join(name, message)
      } catch (error) {
        this.#drop(name)
        this.#reject(message.id, 'subscribe', error, name)
      }
    }
  }

  async #join(name: string, { id, since = {} }: Message<'subscribe'>): Promise<void> {
    const { hub, limits, metrics } = this.#ports
    const topic = parseTopic(name)
    this.#drop(name)
    if (this.#topics.size >= limits.subscriptions)
      throw new ApiError('SUBSCRIPTION_LIMIT', {
        field: 'topics',
        expected: `at most ${limits.subscriptions} topics of a connection`,
      })
    while (!this.#outbox.hasRead() && this.#isOpen) await sleep(UNREAD_POLL_MS)
    if (!this.#isOpen) return
    this.#topics.add(name)
    metrics.subscribed(1)
    const position = Object.hasOwn(since, name) ? (since[name] as string) : null
    const terms = { id, caller: this.caller, since: position }
    const start = await this.#outbox
      .begin(name, () => hub.subscribe(this, topic, terms))
      .finally(() => {
        // The connection may have ended before the hub knew of the subscription.
        if (!this.#isOpen) hub.unsubscribe(this, name)
      })
    this.#spending.charge('subscribe', readsOf(start))
  }

  #drop(name: string): void {
    if (!this.#topics.delete(name)) return
    this.#ports.hub.unsubscribe(this, name)
    this.#ports.metrics.subscribed(-1)
    this.#outbox.forget(name)
  }

  #unsubscribe({ id, op, topics }: Message<'unsubscribe'>): void {
    for (const name of topics) this.#drop(name)
    this.#answer(id, op, { topics })
  }

  async #guard({ id, op, grace_seconds }: Message<'cancel_on_disconnect'>): Promise<void> {
    const caller = traderOf(op, this.caller)
    checkTimeout('grace_seconds', grace_seconds)
    await this.#spending.spend(op)
    const { switches } = this.#ports
    this.#switchId ??= randomUUID()
    await switches.set(this.#switchId, caller, grace_seconds)
    if (!this.#isOpen) switches.end(this.#switchId, this.#reconnectAfterMs)
    this.#answer(id, op, { armed: grace_seconds > 0, grace_seconds })
  }

  // ------------------------------------------------------------------ life

  /** Sends a heartbeat and a ping, or ends the connection. */
  turn(now: number): void {
    if (!this.#isOpen || this.endIfOver(now)) return
    this.#catchUp(true)
    if (!this.#outbox.hasRead()) return
    this.#parts.webSocket.ping()
    this.#sendMessage({
      type: 'heartbeat',
      ts: isoTime(now),
      data: { topics: this.#ports.hub.heads(this, this.#topics) },
    })
  }

  endIfOver(now: number): boolean {
    const isGuarded = this.#switchId !== null && this.#ports.switches.isArmed(this.#switchId)
    const isUsed = this.#topics.size > 0 || isGuarded
    const reason = this.#session.endsBy(now, { isUsed, expiresAt: this.expiresAt })
    if (reason !== null) this.close(reason)
    return reason !== null
  }

  /** Announces the end of the process. */
  announceStop(reconnectAfterMs: number): void {
    this.#reconnectAfterMs = reconnectAfterMs
    const data = { reconnect_after_ms: reconnectAfterMs }
    this.#sendMessage({ type: 'server_shutdown', ts: this.#now, data })
  }

  close(reason: CloseReason): void {
    if (!this.#isOpen) return
    const { code, reason: text } = CLOSES[reason]
    this.#end(reason)
    // A client that does not answer the closing is cut off by the library after its timeout.
    if (reason === 'silent') this.#parts.webSocket.terminate()
    else this.#parts.webSocket.close(code, text)
  }

  /** Whether the connection is closed on both sides. */
  get isGone(): boolean {
    return this.#parts.webSocket.readyState === this.#parts.webSocket.CLOSED
  }

  destroy(): void {
    this.#parts.webSocket.terminate()
  }

  #end(reason: CloseReason | 'client' | 'lost'): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { hub, metrics, switches } = this.#ports
    for (const name of this.#topics) hub.unsubscribe(this, name)
    metrics.subscribed(-this.#topics.size)
    this.#topics.clear()
    if (this.#switchId !== null) switches.end(this.#switchId, this.#reconnectAfterMs)
    metrics.closed(reason)
    this.#parts.membership.leave(this)
  }
}
