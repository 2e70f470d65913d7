/** The engine as its connections see it: commands are checked and submitted, and facts are noted at once. */
import type { Millis } from '../../domain/units.ts'
import { Attempts } from './attempts.ts'
import {
  accountOf,
  COMMANDS,
  classOf,
  type ExchangeAnswer,
  type ExchangeCommand,
  mayRoleSend,
} from './commands.ts'
import type { ConnectionDeadlines } from './connection-deadlines.ts'
import { type Facts, INFORMERS, type Inform } from './facts.ts'
import { decode, encode } from './link/codec.ts'
import type { Role } from './link/messages.ts'
import type { CommandPort } from './link/server.ts'
import type { Reply, Request } from './owner.ts'
import { ReceivedCommands } from './received-commands.ts'
import { checkShape } from './schemas.ts'

export type EngineMessage = ExchangeCommand | Inform

export interface EnginePortParts {
  readonly submit: (request: Request<ExchangeCommand>) => Promise<Reply<ExchangeAnswer>> | null
  readonly facts: Facts
  readonly deadlines: ConnectionDeadlines
  readonly now: () => Millis
  readonly monotonic: () => number
  readonly attempts?: Attempts
  /** False for a command that is not executed at present. */
  readonly allows?: (command: ExchangeCommand) => boolean
}

const isInform = (message: EngineMessage): message is Inform => Object.hasOwn(INFORMERS, message.kind)

function parse(value: unknown): EngineMessage {
  const message = decode(value)
  if (typeof message !== 'object' || message === null || !('kind' in message))
    throw new Error('a command is an object with a kind')
  const { kind } = message
  const isKnown =
    typeof kind === 'string' && (Object.hasOwn(COMMANDS, kind) || Object.hasOwn(INFORMERS, kind))
  if (!isKnown)
    throw new Error(`kind is ${JSON.stringify(kind)?.slice(0, 100)}: expected a command of this protocol`)
  const known = message as EngineMessage
  checkShape(known)
  return known
}

export interface EnginePort extends CommandPort<EngineMessage> {
  /** The member has become the owner. Call it before any client learns that. */
  owns(): void
}

export function createEnginePort(parts: EnginePortParts): EnginePort {
  const { facts, deadlines, now } = parts
  const received = new ReceivedCommands()
  const attempts = parts.attempts ?? new Attempts(parts.monotonic)

  /** Deadlines change beside the state. */
  function follow(command: ExchangeCommand): void {
    if (command.kind === 'hold_connections') deadlines.held(command.connections, now())
    else if (command.kind === 'end_connections') deadlines.ended(command.connections)
  }

  function execute(request: Request<ExchangeCommand>): Promise<Reply<ExchangeAnswer>> | null {
    if (parts.allows?.(request.command) === false) return Promise.resolve({ none: 'not_executed' })
    const reply = parts.submit(request)
    if (reply === null) return null
    return reply.then((result) => {
      if (!('none' in result)) follow(request.command)
      return result
    })
  }

  /** An attempt that must not be executed any more is answered so. */
  function attempt(request: Request<ExchangeCommand>, arrivedAt: number): Promise<Reply<unknown>> | null {
    const own = attempts.begin(request.command, arrivedAt)
    if (own === null) return Promise.resolve({ none: 'not_executed' })
    const reply = execute(request)
    if (reply === null) own.ended()
    return (
      reply?.then((result) => {
        const isLast = 'none' in result || own.answered(result.answer)
        own.ended()
        if (!isLast) return { none: 'unknown' }
        return 'none' in result ? result : { answer: encode(result.answer) }
      }) ?? null
    )
  }

  return {
    owns: () => attempts.owns(),
    parse,
    allows: (role: Role, message) =>
      isInform(message) ? INFORMERS[message.kind] === role : mayRoleSend(role, message),
    classify: (message) =>
      isInform(message)
        ? { class: 'chain', account: null }
        : { class: classOf(message), account: accountOf(message) },
    submit({ command, arrivedAt, ...terms }) {
      if (isInform(command)) {
        facts.note(command)
        return Promise.resolve({ answer: null })
      }
      if (command.kind === 'barrier') {
        attempts.fence(command.fences)
        return received
          .replied()
          .then(() => attempt({ command, ...terms }, arrivedAt) ?? { none: 'not_executed' })
      }
      const replied = attempt({ command, ...terms }, arrivedAt)
      if (replied !== null) received.add(replied)
      return replied
    },
  }
}
