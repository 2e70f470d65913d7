/**
 * Serves a client's connection: authenticates it, checks its authority per command, submits commands and sends replies.
 * A command repeated by process and number is not submitted again.
 */

import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../../service/logger.ts'
import { MAX_ATTEMPT_AGE_MS } from '../attempts.ts'
import type { Reply, Request } from '../owner.ts'
import { FrameError, FrameReader, FrameWriter } from './frames.ts'
import {
  type Challenge,
  type CommandMessage,
  type Hello,
  type Identity,
  identityRefusal,
  isSameProof,
  MOST_TRACE_CHARACTERS,
  type NotAccepted,
  proofOf,
  type Refused,
  type ReplyMessage,
  ROLES,
  type Role,
  STATE_MS,
} from './messages.ts'
import type { RecentReplies } from './recent-replies.ts'

export interface ReceivedRequest<Command> extends Request<Command> {
  /** By the member's monotonic clock; not later than when the client received the command. */
  readonly arrivedAt: number
}

/** The engine as a connection sees it: commands are parsed, checked against the role, and submitted. */
export interface CommandPort<Command> {
  /** Throws an Error that names the malformed field. */
  parse(value: unknown): Command
  /** Whether clients with the role may send the command. */
  allows(role: Role, command: Command): boolean
  /** The queue and the account of the command; a client cannot choose them. */
  classify(command: Command): Pick<Request<Command>, 'class' | 'account'>
  /** Null while this member is not the owner. */
  submit(request: ReceivedRequest<Command>): Promise<Reply<unknown>> | null
}

export interface LinkPorts<Command> extends CommandPort<Command> {
  readonly identity: Identity
  /** Keys of the roles; a role without a key cannot connect. */
  readonly keys: ReadonlyMap<Role, Buffer>
  readonly recent: RecentReplies
  /** Random id of this process. */
  readonly member: string
  readonly monotonic: () => number
  /** Token of this member's ownership; null while it does not own the journal. */
  readonly token: () => number | null
  readonly logger: Logger
}

export interface LinkLimits {
  readonly maxFrameBytes: number
  /** Maximum unanswered commands of a connection; further commands are refused at once. */
  readonly maxPending: number
  /** Bytes of replies that a client may leave unread before the connection is closed. */
  readonly maxUnreadBytes: number
  /** Time for the handshake. */
  readonly handshakeMs: number
}

export const LINK_LIMITS: LinkLimits = {
  maxFrameBytes: 4 * 1024 * 1024,
  maxPending: 20_000,
  maxUnreadBytes: 64 * 1024 * 1024,
  handshakeMs: 5_000,
}

export interface ServedLink {
  /** Sends the client whether this member is the owner now. */
  announce(): void
  /** Ends the connection once what was written has left. */
  end(): void
  close(): void
}

interface Client {
  readonly role: Role
  readonly process: string
}

export function serveLink<Command>(
  stream: Duplex,
  ports: LinkPorts<Command>,
  limits: LinkLimits = LINK_LIMITS,
): ServedLink {
  const { identity, logger } = ports
  const reader = new FrameReader(limits.maxFrameBytes)
  const writer = new FrameWriter(stream)
  const challenge: Challenge = { kind: 'challenge', ...identity, nonce: randomBytes(32).toString('hex') }
  const handshake = setTimeout(
    () => refuse({ kind: 'refused', field: 'hello', received: 'nothing', expected: 'a hello in time' }),
    limits.handshakeMs,
  )
  let client: Client | null = null
  let pending = 0
  let statements: NodeJS.Timeout | undefined

  function close(): void {
    clearTimeout(handshake)
    stream.destroy()
  }

  function announce(): void {
    if (client === null) return
    if (writer.waitingBytes > limits.maxUnreadBytes) close()
    else writer.write({ kind: 'ownership', token: ports.token(), at: ports.monotonic() })
  }

  function refuse(refusal: Refused): void {
    logger.warn({ ...refusal, kind: undefined }, 'connection refused')
    clearTimeout(handshake)
    writer.write(refusal)
    stream.end()
  }

  function greet(message: unknown): void {
    const hello = message as Partial<Hello>
    const refusal = helloRefusal(ports, challenge, hello)
    if (refusal !== null) {
      refuse(refusal)
      return
    }
    const { role, process } = hello as Hello
    client = { role, process }
    clearTimeout(handshake)
    const key = ports.keys.get(role) as Buffer
    const proof = proofOf(key, 'engine', challenge, hello as Hello)
    writer.write({
      kind: 'welcome',
      proof,
      member: ports.member,
      token: ports.token(),
      at: ports.monotonic(),
    })
    statements = setInterval(announce, STATE_MS)
  }

  function execute({ role, process }: Client, message: unknown): void {
    const { number, arrivedAt, expiresAt, command: value, traceId } = message as CommandMessage
    const problem = commandProblem(message)
    if (problem !== null) throw new FrameError(problem)
    const reply = (content: ReplyMessage['reply']): void => {
      if (writer.waitingBytes > limits.maxUnreadBytes) close()
      else writer.write({ kind: 'reply', number, reply: content, at: ports.monotonic() })
    }
    const refuseCommand = (none: NotAccepted, detail: string): void => reply({ none, detail })
    const known = ports.recent.get(process, number)
    if (known !== undefined) {
      void known.then(reply)
      return
    }
    const now = ports.monotonic()
    // It has waited in a socket while a process was frozen; its client may have said meanwhile that it was not executed.
    if (expiresAt <= now || arrivedAt < now - MAX_ATTEMPT_AGE_MS) {
      reply({ none: 'not_executed' })
      return
    }
    const parsed = attempt(() => ports.parse(value))
    if ('error' in parsed) {
      refuseCommand('invalid', parsed.error)
      return
    }
    const { command } = parsed
    if (!ports.allows(role, command)) {
      refuseCommand('forbidden', `clients with the role ${role} may not send this command`)
      return
    }
    if (pending >= limits.maxPending) {
      reply({ none: 'overloaded' })
      return
    }
    const deadline = Math.min(expiresAt, now + MAX_ATTEMPT_AGE_MS)
    const replied = ports.submit({ command, ...ports.classify(command), deadline, arrivedAt, traceId })
    if (replied === null) {
      refuseCommand('not_owner', 'another member of the engine owns the journal')
      return
    }
    pending += 1
    ports.recent.remember(process, number, replied)
    void replied.then((content) => {
      pending -= 1
      reply(content)
    })
  }

  stream.on('data', (chunk: Buffer) => {
    try {
      for (const message of reader.push(chunk)) {
        if (client === null) greet(message)
        else execute(client, message)
        if (stream.writableEnded || stream.destroyed) return
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      refuse({ kind: 'refused', field: 'frame', received: 'malformed bytes', expected: error.message })
    }
  })
  stream.on('error', (err) => logger.warn({ err }, 'connection failed'))
  stream.on('close', () => {
    clearTimeout(handshake)
    clearInterval(statements)
  })
  writer.write(challenge)

  return {
    announce,
    end: () => writer.end(),
    close,
  }
}

/** The identity is compared before the proof: a client of another chain must learn why it is refused. */
function helloRefusal(
  { identity, keys }: Pick<LinkPorts<never>, 'identity' | 'keys'>,
  challenge: Challenge,
  hello: Partial<Hello>,
): Refused | null {
  const { kind, role, process, nonce, proof } = (hello ?? {}) as Partial<Hello>
  const refused = (field: string, received: unknown, expected: string): Refused => ({
    kind: 'refused',
    field,
    received: typeof received === 'string' || typeof received === 'number' ? received : 'nothing',
    expected,
  })
  if (kind !== 'hello') return refused('kind', kind, 'hello')
  const other = identityRefusal(identity, hello)
  if (other !== null) return other
  const key = role === undefined ? undefined : keys.get(role)
  if (role === undefined || key === undefined) return refused('role', role, `one of ${ROLES.join(', ')}`)
  if (typeof process !== 'string' || process.length === 0 || process.length > MAX_PROCESS_LENGTH)
    return refused('process', process, `1 to ${MAX_PROCESS_LENGTH} characters`)
  if (typeof nonce !== 'string' || nonce.length !== challenge.nonce.length)
    return refused('nonce', nonce, '32 bytes in hexadecimal digits')
  const expected = proofOf(key, 'client', challenge, hello as Hello)
  if (typeof proof !== 'string' || !isSameProof(expected, proof))
    return {
      kind: 'refused',
      field: 'proof',
      received: 'another value',
      expected: `proof of the ${role} key`,
    }
  return null
}

const MAX_PROCESS_LENGTH = 64

/** Null if the message is a command. */
function commandProblem(message: unknown): string | null {
  const { kind, number, arrivedAt, expiresAt, traceId } = (message ?? {}) as Partial<CommandMessage>
  if (kind !== 'command') return `kind is command, received ${String(kind)}`
  if (!Number.isSafeInteger(number)) return 'the number of a command is an integer'
  if (typeof arrivedAt !== 'number' || typeof expiresAt !== 'number' || !(arrivedAt < expiresAt))
    return 'a command has the times arrivedAt and, after it, expiresAt'
  const isTrace = typeof traceId === 'string' && traceId.length <= MOST_TRACE_CHARACTERS
  if (traceId !== undefined && !isTrace)
    return `the traceId of a command is text of at most ${MOST_TRACE_CHARACTERS} characters`
  return null
}

function attempt<Command>(parse: () => Command): { readonly command: Command } | { readonly error: string } {
  try {
    return { command: parse() }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}
