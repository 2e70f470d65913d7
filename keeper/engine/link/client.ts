/**
 * Sends a process's commands to the engine member that owns the journal. It is connected to every member, so that it
 * learns of a takeover even while the old owner is frozen.
 */

import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../../service/logger.ts'
import type { Reply } from '../owner.ts'
import type { Timer } from '../ports.ts'
import { FrameError, FrameReader, FrameWriter } from './frames.ts'
import {
  type Challenge,
  type CommandMessage,
  type Hello,
  type Identity,
  identityRefusal,
  isSameProof,
  type NotAccepted,
  proofOf,
  type Refused,
  type ReplyMessage,
  type Role,
  type ServerMessage,
  type Welcome,
} from './messages.ts'
import { PeerClock } from './peer-clock.ts'
import { silentRefusal, tlsRefusal } from './tls.ts'

/** `not_executed`: also of a command that was never sent within its budget. `unknown`: it was sent, and no reply came. */
export type ClientReply =
  | Reply<unknown>
  | { readonly none: Exclude<NotAccepted, 'not_owner'>; readonly detail: string }

export interface EngineClientPorts {
  readonly identity: Identity
  readonly role: Role
  readonly key: Buffer
  /** Addresses of all members. */
  readonly members: readonly string[]
  /** Opens a connection; it emits `error` or `close` if it cannot be opened. */
  readonly open: (member: string) => Duplex
  readonly timer: Timer
  readonly monotonic: () => number
  readonly logger: Logger
}

export interface EngineClientLimits {
  readonly maxFrameBytes: number
  /** Maximum unanswered commands; further commands are refused at once. */
  readonly maxOpen: number
  /** Between two attempts to connect to a member; doubled with each further one that fails, up to `mostRetryMs`. */
  readonly retryMs: number
  readonly mostRetryMs: number
  /** Time for a connection and its handshake. */
  readonly handshakeMs: number
  /** After its budget, time for the reply to a command that was sent. */
  readonly replyMs: number
  /** A member that says nothing for so long, although it states its ownership every `STATE_MS`, is frozen or behind a partition. */
  readonly silenceMs: number
}

/** An engine with TLS waits for the handshake of a client without TLS. */
const NO_WELCOME =
  'engine has not answered in time: it is frozen, unreachable, or has ENGINE_TLS_CERT_FILE while this process has none'

export const CLIENT_LIMITS: EngineClientLimits = {
  maxFrameBytes: 16 * 1024 * 1024,
  maxOpen: 20_000,
  retryMs: 50,
  mostRetryMs: 400,
  handshakeMs: 2_000,
  replyMs: 1_000,
  silenceMs: 1_500,
}

export interface EngineClient {
  /** Never rejects. `arrivedAt`: monotonic time, not later than when this process received the command; by default now. */
  submit(command: unknown, budgetMs: number, arrivedAt?: number, traceId?: string): Promise<ClientReply>
  /** Submits a fact to the owner and sends it to the followers, so that the next owner has it when it takes over. */
  inform(fact: unknown, budgetMs: number): Promise<ClientReply>
  /** Resolves when the client is connected to the owner. */
  ready(): Promise<void>
  close(): void
}

interface Open {
  readonly number: number
  readonly command: unknown
  readonly traceId?: string | undefined
  readonly arrivedAt: number
  readonly deadline: number
  /** The member that may have executed it; null if it was not sent. */
  member: string | null
  readonly reply: (reply: ClientReply) => void
  readonly stopTimer: () => void
}

interface Connection {
  readonly stream: Duplex
  readonly writer: FrameWriter
  /** Estimated once the member is welcome. */
  readonly clock: PeerClock
  /** The member's process; null before its welcome. */
  member: string | null
  /** Token of the member's ownership; null while it is not the owner. */
  token: number | null
}

export function createEngineClient(
  ports: EngineClientPorts,
  limits: EngineClientLimits = CLIENT_LIMITS,
): EngineClient {
  const { timer, logger, monotonic } = ports
  const process = randomBytes(16).toString('hex')
  const open = new Map<number, Open>()
  const connections = new Set<Connection>()
  /** Connection to the owner; null while none is known. */
  let owner: Connection | null = null
  let next = 0
  let isClosed = false
  let whenReady: (() => void)[] = []

  function finish(item: Open, reply: ClientReply): void {
    if (!open.delete(item.number)) return
    item.stopTimer()
    item.reply(reply)
  }

  /** A command that was sent and has no reply may have been executed. */
  const giveUp = (item: Open): void =>
    finish(item, { none: item.member === null ? 'not_executed' : 'unknown' })

  function send(item: Open): void {
    if (owner === null) return
    if (item.deadline <= monotonic()) return
    item.member = owner.member
    write(owner, item)
  }

  function write(
    { writer, clock }: Connection,
    {
      number,
      arrivedAt,
      deadline,
      command,
      traceId,
    }: Pick<Open, 'number' | 'arrivedAt' | 'deadline' | 'command' | 'traceId'>,
  ): void {
    const message: CommandMessage = {
      kind: 'command',
      number,
      arrivedAt: clock.timeOf(arrivedAt),
      expiresAt: clock.timeOf(deadline),
      command,
      traceId,
    }
    writer.write(message)
  }

  /** Keeps a connection to the member until the client is closed. */
  function connect(address: string, retryMs: number): void {
    if (isClosed) return
    const stream = ports.open(address)
    const own: Connection = {
      stream,
      writer: new FrameWriter(stream),
      clock: new PeerClock(monotonic),
      member: null,
      token: null,
    }
    connections.add(own)
    const reader = new FrameReader(limits.maxFrameBytes)
    const stopHandshake = timer.after(limits.handshakeMs, () => {
      if (own.member !== null) return
      logger.warn(
        { address, limit_ms: limits.handshakeMs, has_challenge: handshake.challenge !== null },
        NO_WELCOME,
      )
      stream.destroy()
    })
    const hearing = listenFor(own)
    const handshake = { challenge: null as Challenge | null, hello: null as Hello | null }
    stream.on('data', (chunk: Buffer) => {
      hearing.heard()
      try {
        for (const message of reader.push(chunk)) receive(own, handshake, message as ServerMessage)
      } catch (err) {
        if (!(err instanceof FrameError)) throw err
        logger.warn({ err, address }, 'engine sent a malformed frame')
        stream.destroy()
      }
    })
    stream.on('error', (err) => {
      const refusal = tlsRefusal((err as NodeJS.ErrnoException).code)
      if (refusal === null) logger.debug({ err, address }, 'connection to the engine failed')
      else reportRefusal(refusal)
    })
    stream.on('close', () => {
      stopHandshake()
      hearing.stop()
      connections.delete(own)
      leave(own)
      const silent = isClosed || handshake.challenge !== null ? null : silentRefusal(stream)
      if (silent !== null) reportRefusal(silent)
      const wasMember = own.member !== null
      const pauseMs = wasMember ? limits.retryMs : retryMs
      timer.after(pauseMs, () => connect(address, Math.min(2 * pauseMs, limits.mostRetryMs)))
    })
  }

  /** Closes a connection whose member is silent. */
  function listenFor({ stream }: Connection): { heard(): void; stop(): void } {
    let heardAt = monotonic()
    let stopTimer = (): void => {}
    const isSilent = (): boolean => monotonic() - heardAt >= limits.silenceMs
    const watch = (): void => {
      stopTimer = timer.after(Math.max(heardAt + limits.silenceMs - monotonic(), 1), () => {
        if (!isSilent()) watch()
        // After a freeze of this process, bytes wait to be read: the timer comes first.
        else
          timer.soon(() => {
            if (isSilent()) stream.destroy()
            else watch()
          })
      })
    }
    watch()
    return {
      heard() {
        heardAt = monotonic()
      },
      stop: () => stopTimer(),
    }
  }

  function receive(
    own: Connection,
    handshake: { challenge: Challenge | null; hello: Hello | null },
    message: ServerMessage,
  ): void {
    switch (message.kind) {
      case 'challenge':
        if (handshake.challenge !== null) throw new FrameError('one challenge per connection')
        handshake.challenge = message
        handshake.hello = answerChallenge(own, message)
        return
      case 'welcome':
        welcome(own, handshake, message)
        return
      case 'ownership':
        if (own.member === null) throw new FrameError('an ownership follows a welcome')
        own.clock.heard(message.at)
        follow(own, message.token)
        return
      case 'refused':
        reportRefusal(message)
        own.stream.destroy()
        return
      case 'reply':
        own.clock.heard(message.at)
        receiveReply(own, message)
    }
  }

  function answerChallenge(own: Connection, challenge: Challenge): Hello | null {
    const refusal = identityRefusal(ports.identity, challenge)
    if (refusal !== null) {
      reportRefusal(refusal)
      own.stream.destroy()
      return null
    }
    const nonce = randomBytes(32).toString('hex')
    const hello = { ...ports.identity, role: ports.role, process, nonce }
    const proof = proofOf(ports.key, 'client', challenge, hello)
    const message: Hello = { kind: 'hello', ...hello, proof }
    own.writer.write(message)
    return message
  }

  function reportRefusal({ field, received, expected }: Refused): void {
    logger.error({ field, received, expected }, 'engine and client do not fit together')
  }

  function welcome(
    own: Connection,
    { challenge, hello }: { readonly challenge: Challenge | null; readonly hello: Hello | null },
    message: Welcome,
  ): void {
    if (challenge === null || hello === null) throw new FrameError('a welcome follows a hello')
    if (!isSameProof(proofOf(ports.key, 'engine', challenge, hello), message.proof)) {
      logger.error({}, 'engine does not have the key of this role')
      own.stream.destroy()
      return
    }
    own.member = message.member
    own.clock.heard(message.at)
    follow(own, message.token)
  }

  /** A frozen owner that continues still believes in its ownership; its token is lower than its successor's. */
  function follow(own: Connection, token: number | null): void {
    own.token = token
    if (token === null) leave(own)
    else if (owner === null || (owner.token as number) < token) {
      owner = own
      resend(own)
    }
  }

  /**
   * Sends what waits, and repeats what was sent to the same process. Commands that another process may have executed have an unknown outcome.
   */
  function resend(own: Connection): void {
    for (const item of [...open.values()]) {
      if (item.member === null || item.member === own.member) send(item)
      else giveUp(item)
    }
    for (const resolve of whenReady) resolve()
    whenReady = []
  }

  /** Replies that are under way still come over this connection. The next owner states its ownership. */
  function leave(own: Connection): void {
    if (owner === own) owner = null
  }

  function receiveReply(own: Connection, { number, reply }: ReplyMessage): void {
    const item = open.get(number)
    if (item === undefined) return
    if ('none' in reply && reply.none === 'not_owner') {
      item.member = null
      leave(own)
      send(item)
      return
    }
    finish(item, reply as ClientReply)
  }

  for (const member of ports.members) connect(member, limits.retryMs)

  /** No reply is awaited. */
  function sendFollowers(command: unknown, budgetMs: number): void {
    const arrivedAt = monotonic()
    for (const own of connections) {
      if (own === owner || own.member === null) continue
      write(own, { number: ++next, arrivedAt, deadline: arrivedAt + budgetMs, command })
    }
  }

  const client: EngineClient = {
    inform(fact, budgetMs) {
      sendFollowers(fact, budgetMs)
      return client.submit(fact, budgetMs)
    },
    submit(command, budgetMs, arrivedAt = monotonic(), traceId = undefined) {
      if (isClosed) return Promise.resolve({ none: 'not_executed' })
      if (open.size >= limits.maxOpen) return Promise.resolve({ none: 'overloaded' })
      return new Promise((reply) => {
        const number = ++next
        const item: Open = {
          number,
          command,
          traceId,
          arrivedAt,
          deadline: monotonic() + budgetMs,
          member: null,
          reply,
          stopTimer: timer.after(budgetMs, () => {
            if (item.member === null) giveUp(item)
            else timer.after(limits.replyMs, () => giveUp(item))
          }),
        }
        open.set(number, item)
        send(item)
      })
    },
    ready: () =>
      owner !== null
        ? Promise.resolve()
        : new Promise((resolve) => {
            whenReady.push(resolve)
          }),
    close() {
      isClosed = true
      for (const item of [...open.values()]) giveUp(item)
      for (const { stream } of connections) stream.destroy()
    },
  }
  return client
}
