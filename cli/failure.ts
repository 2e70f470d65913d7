/** Errors of a command, and the exit code and the text of each. */
import { ClearbatchError } from '../client/errors.ts'
import { UsageError } from '../service/command-line.ts'
import type { CommandKind } from './command-kind.ts'

export const EXIT = {
  done: 0,
  /** The exchange, or a check of the command, refuses. */
  refused: 1,
  usage: 2,
  /** The command may have taken effect: compare with the account before repeating it. */
  unknown: 3,
  unauthorized: 4,
  /** No answer, an overload, or a rate limit: the same command can succeed later. */
  unavailable: 5,
  /** A proof does not hold. */
  unverified: 6,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** An error whose message says what would work. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    message: string,
    exitCode: ExitCode = EXIT.refused,
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message)
    this.exitCode = exitCode
    this.details = details
  }
}

export interface Failure {
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
  readonly exitCode: ExitCode
}

/** `kind` decides what a lost answer means: a read has no effect. */
export function failureOf(error: unknown, kind: CommandKind): Failure {
  if (error instanceof UsageError)
    return { message: error.message, details: { code: 'USAGE' }, exitCode: EXIT.usage }
  if (error instanceof CommandError)
    return { message: error.message, details: error.details, exitCode: error.exitCode }
  if (error instanceof ClearbatchError) return failureOfExchange(error, kind)
  const { code, path } = error as NodeJS.ErrnoException
  if (typeof code === 'string' && code in SYSTEM_ERRORS) {
    const message = `${path ?? 'the disk'}: ${SYSTEM_ERRORS[code as keyof typeof SYSTEM_ERRORS]}`
    return { message, details: { code }, exitCode: EXIT.refused }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { message, details: { code: 'REFUSED' }, exitCode: EXIT.refused }
}

const SYSTEM_ERRORS = {
  ENOENT: 'the file or its folder does not exist; create it or name another',
  EACCES: 'this user may not read or write it; change its owner or mode, or name another file',
  EPERM: 'this user may not read or write it; change its owner or mode, or name another file',
  EISDIR: 'this is a folder; name a file',
  ENOTDIR: 'a part of this path is a file, not a folder; name another path',
  ENOSPC: 'the disk is full; free space and run the command again, which continues where it stopped',
  EDQUOT: 'the disk quota is used up; free space and run the command again',
  EROFS: 'the file system is read-only; name a file on another one',
} as const

function failureOfExchange(error: ClearbatchError, kind: CommandKind): Failure {
  const { message, code, outcome, status, details, retryAfterMs } = error
  const hasEffect = kind === 'trade' || kind === 'account'
  const facts = {
    ...details,
    code,
    ...(outcome === null || !hasEffect ? {} : { outcome }),
    ...(retryAfterMs === null ? {} : { retry_after: retryAfterMs / 1000 }),
  }
  return { message: hinted(error, message), details: facts, exitCode: exitCodeOf({ status, outcome, kind }) }
}

function exitCodeOf({
  status,
  outcome,
  kind,
}: Pick<ClearbatchError, 'status' | 'outcome'> & { kind: CommandKind }) {
  if (outcome === 'unknown' && (kind === 'trade' || kind === 'account')) return EXIT.unknown
  if (status === 401 || status === 403) return EXIT.unauthorized
  if (status === 0 || status === 408 || status === 429 || status >= 500) return EXIT.unavailable
  return EXIT.refused
}

function hinted({ status, cause, details }: ClearbatchError, message: string): string {
  if (status === 401) return `${message.replace(/\.$/, '')}. Sign in again with \`clearbatch auth login\``
  if (status !== 0) return message
  const { code, message: reason } = ((cause as Error | undefined)?.cause ??
    cause ??
    {}) as NodeJS.ErrnoException
  const why = typeof code === 'string' ? code : (reason ?? message)
  if (typeof details.node === 'string')
    return `no answer from the node at ${details.node} (${why}): check --rpc-url, and that the node runs`
  return `no answer from the exchange (${why}): check --url and that the exchange runs, for example with \`clearbatch doctor\``
}

/** One line, and further facts of a refusal on their own lines. */
export function failureText({ message, details, exitCode }: Failure): string {
  if (exitCode === EXIT.usage) return message
  const { code, outcome, field, expected, received, nearest_valid } = details
  // The message of an error of this machine says all.
  const isOwn = code === 'REFUSED' || (typeof code === 'string' && code in SYSTEM_ERRORS)
  const facts = { code: isOwn ? undefined : code, outcome, field, expected, received, nearest_valid }
  const rows = Object.entries(facts).filter(([, value]) => value !== undefined && value !== null)
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  return [message, ...rows.map(([name, value]) => `  ${name}: ${text(value)}`)].join('\n')
}
