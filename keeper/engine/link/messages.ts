/** Messages between the engine and its clients, and the proof by which each side authenticates itself. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Reply } from '../owner.ts'

/** Rises with every incompatible change of these messages. */
export const PROTOCOL = 3

/** Each client process has one role, which bounds the commands that it may send. */
export const ROLES = ['api', 'ingest', 'worker', 'publisher', 'operator'] as const
export type Role = (typeof ROLES)[number]

/** Facts on which both sides must agree before the first command. */
export interface Identity {
  readonly protocol: number
  readonly chainId: number
  /** Newest migration when the process started. It differs during an upgrade and is not compared. */
  readonly schema: string
  /** Rises when a database is restored from a backup. */
  readonly incarnation: number
}

/** The engine's first message. */
export interface Challenge extends Identity {
  readonly kind: 'challenge'
  /** 32 random bytes in hexadecimal digits. */
  readonly nonce: string
}

/** The client's first message. */
export interface Hello extends Identity {
  readonly kind: 'hello'
  readonly role: Role
  /** Random id of the client's process: with a command's number it identifies the command. */
  readonly process: string
  readonly nonce: string
  readonly proof: string
}

export interface Welcome {
  readonly kind: 'welcome'
  /** Proves to the client that this engine has the role's key. */
  readonly proof: string
  /** Random id of the member's process: only the same process remembers its replies. */
  readonly member: string
  /** Token of its ownership; null: the member does not own the journal. */
  readonly token: number | null
  /** Monotonic time of the member, by which it counts the times of commands. */
  readonly at: number
}

/** The connection is refused, and closed after this message. */
export interface Refused {
  readonly kind: 'refused'
  readonly field: string
  readonly received: string | number
  readonly expected: string
}

export interface CommandMessage {
  readonly kind: 'command'
  /** Unique in the client's process; ascending. */
  readonly number: number
  /**
   * Times by the member's monotonic clock, as far as the client knows it: never later than the true ones. The client received the command at
   * `arrivedAt`; after `expiresAt` it must not be decided.
   */
  readonly arrivedAt: number
  readonly expiresAt: number
  readonly command: unknown
  /** Names the request behind the command in debug lines; at most `MOST_TRACE_CHARACTERS`. */
  readonly traceId?: string | undefined
}

export const MOST_TRACE_CHARACTERS = 128

/** Why the engine has not executed a command, besides the reasons of the owner. */
export type NotAccepted =
  /** This member of the engine does not own the journal. */
  | 'not_owner'
  /** The role may not send this command. */
  | 'forbidden'
  /** The command is malformed. */
  | 'invalid'

export interface ReplyMessage {
  readonly kind: 'reply'
  readonly number: number
  readonly reply: Reply<unknown> | { readonly none: NotAccepted; readonly detail: string }
  readonly at: number
}

/** Sent when this member becomes the owner or no longer is, and every `STATE_MS`: a member that does not send it is frozen. */
export interface OwnershipStated {
  readonly kind: 'ownership'
  /** As in the welcome. */
  readonly token: number | null
  readonly at: number
}

export const STATE_MS = 250

export type ServerMessage = Challenge | Welcome | Refused | ReplyMessage | OwnershipStated
export type ClientMessage = Hello | CommandMessage

/** HMAC-SHA256 with the role's key over everything that the hello states, and the side that proves. */
export function proofOf(
  key: Buffer,
  side: 'client' | 'engine',
  { nonce }: Pick<Challenge, 'nonce'>,
  hello: Omit<Hello, 'proof' | 'kind'>,
): string {
  const { protocol, chainId, schema, incarnation, role, process, nonce: own } = hello
  const parts = [side, nonce, own, protocol, chainId, schema, incarnation, role, process]
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('hex')
}

export function isSameProof(expected: string, received: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(received)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** The first field of the identity in which the two sides differ; null if they agree. */
export function identityRefusal(own: Identity, other: Partial<Identity>): Refused | null {
  for (const field of ['protocol', 'chainId', 'incarnation'] as const) {
    if (own[field] !== other[field])
      return {
        kind: 'refused',
        field,
        received: other[field] ?? 'nothing',
        expected: String(own[field]),
      }
  }
  return null
}
