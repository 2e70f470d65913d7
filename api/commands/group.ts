/** Runs a group of commands in one transaction. Every command is answered, and only after the commit. */
import type pg from 'pg'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import { isConnectionError, isContention, isTimeout } from '../database-errors.ts'
import { ApiError } from '../errors.ts'
import { type Command, hashesOf, isSpanning } from './command.ts'
import { type CommandDecision, decide } from './decide.ts'
import type { JournalNotifier } from './journal-notifier.ts'
import { type GroupScope, openGroup } from './open-group.ts'
import type { FreshnessLimits } from './place.ts'
import { CommitUnknown, commitGroup } from './write-group.ts'

export interface GroupLogger {
  debug(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export interface GroupPorts {
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-placement-commit' | 'after-request-commit'>
  readonly logger: GroupLogger
  readonly notifier: JournalNotifier
  observe(size: number, seconds: number): void
}

export interface GroupOptions extends FreshnessLimits {
  readonly chainId: number
  readonly commandTimeoutMs: number
}

/** Attempts per group: a deadlock or a serialization failure is not an error of a command, so the group is retried. */
const ATTEMPTS = 3

function scopeOf({ chainId }: GroupOptions, commands: readonly Command[]): GroupScope {
  const marketIds = commands.flatMap(({ markets }) => markets.map(({ marketId }) => marketId))
  return { chainId, marketIds: [...new Set(marketIds)], isSpanning: commands.some(isSpanning) }
}

/** Commits the group and returns its answers. Throws CommitUnknown, or another error if nothing was stored. */
async function runGroup(
  ports: GroupPorts,
  options: GroupOptions,
  commands: readonly Command[],
): Promise<readonly CommandDecision[]> {
  const client = await ports.pool.connect()
  let broken: Error | undefined
  try {
    const state = await openGroup(client, scopeOf(options, commands), commands)
    const now = ports.clock.now()
    const { changes, answers } = decide(commands, state, now, options)
    const heads = await commitGroup(client, changes, now)
    ports.killPoint('after-placement-commit')
    if (changes.requests.length > 0) ports.killPoint('after-request-commit')
    for (const { shard, head } of heads) ports.notifier.notify(shard, head)
    return answers
  } catch (error) {
    broken = await rollback(client, error as Error)
    throw error
  } finally {
    client.release(broken)
  }
}

/** The error to discard the connection with, or undefined if it can be reused. */
async function rollback(client: pg.PoolClient, error: Error): Promise<Error | undefined> {
  if (error instanceof CommitUnknown || isConnectionError(error)) return error
  try {
    await client.query('rollback')
    return undefined
  } catch (second) {
    return second as Error
  }
}

/** The error for every command of a group whose transaction failed, or null if the failure may belong to one command. */
function groupError(error: unknown): ApiError | null {
  if (error instanceof CommitUnknown) return new ApiError('OUTCOME_UNKNOWN', {}, '1')
  if (isConnectionError(error)) return new ApiError('DATABASE_UNAVAILABLE', {}, '1')
  if (isTimeout(error) || isContention(error)) return new ApiError('OVERLOADED', {}, '1')
  return null
}

function answer(command: Command, decided: CommandDecision): void {
  if (decided instanceof ApiError) command.reject(decided)
  else command.resolve(decided.result)
}

/** Rejects commands that have waited longer than the command timeout: their clients have given up. */
function dropExpired(ports: GroupPorts, options: GroupOptions, commands: readonly Command[]): Command[] {
  const oldest = ports.clock.now() - options.commandTimeoutMs
  return commands.filter((command) => {
    const isFresh = command.arrivedAt >= oldest
    if (!isFresh) command.reject(new ApiError('OVERLOADED', {}, '1'))
    return isFresh
  })
}

export function createGroupRunner(ports: GroupPorts, options: GroupOptions) {
  const attempt = async (commands: readonly Command[], tries: number): Promise<void> => {
    try {
      const answers = await runGroup(ports, options, commands)
      ports.logger.debug({ order_hashes: commands.flatMap(hashesOf) }, 'group of commands committed')
      for (const [at, command] of commands.entries()) answer(command, answers[at] as CommandDecision)
    } catch (error) {
      if (isContention(error) && tries > 1) return attempt(commands, tries - 1)
      const shared = groupError(error)
      if (shared !== null) {
        ports.logger.warn({ err: error, commands: commands.length }, 'group of commands failed')
        for (const command of commands) command.reject(shared)
      } else if (commands.length > 1) {
        // Each command is retried in a transaction of its own, so that only the failing one fails.
        for (const command of commands) await attempt([command], ATTEMPTS)
      } else {
        ports.logger.error({ err: error, order_hashes: commands.flatMap(hashesOf) }, 'command failed')
        for (const command of commands) command.reject(new ApiError('INTERNAL'))
      }
    }
  }

  return async (group: readonly Command[]): Promise<void> => {
    const commands = dropExpired(ports, options, group)
    if (commands.length === 0) return
    const start = performance.now()
    await attempt(commands, ATTEMPTS)
    ports.observe(
      commands.reduce((sum, { items }) => sum + items.length, 0),
      (performance.now() - start) / 1000,
    )
  }
}
