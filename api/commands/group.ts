/** One transaction for a group of commands of one market, or of several. Every command is answered, and only after the commit. */
import type pg from 'pg'
import { isConnectionError, isContention, isTimeout } from '../database-errors.ts'
import { ApiError } from '../errors.ts'
import type { Clock, Reached } from '../ports.ts'
import { type Command, hashesOf } from './command.ts'
import { type Decided, decide } from './decide.ts'
import { type GroupScope, openGroup } from './group-state.ts'
import type { Announcer } from './journal-notifier.ts'
import type { Ages } from './place.ts'
import { writeGroup } from './write-group.ts'

export interface GroupLog {
  debug(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export interface GroupPorts {
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly reached: Reached
  readonly log: GroupLog
  readonly announcer: Announcer
  observe(size: number, seconds: number): void
}

export interface GroupOptions extends Ages {
  readonly chainId: number
  readonly commandTimeoutMs: number
}

/** A deadlock or a serialization failure is nobody's fault: the group is run again. */
const ATTEMPTS = 3

/** Nobody knows whether the commit took effect. */
class CommitUnknown extends Error {}

function scopeOf({ chainId }: GroupOptions, commands: readonly Command[]): GroupScope {
  const marketIds = commands.flatMap(({ markets }) => markets.map(({ marketId }) => marketId))
  const isSpanning = commands.some(({ markets }) => markets.length !== 1)
  return { chainId, marketIds: [...new Set(marketIds)], isSpanning }
}

/** Commits the group and returns its answers. Throws where nothing was stored, or CommitUnknown. */
async function commitGroup(
  ports: GroupPorts,
  options: GroupOptions,
  commands: readonly Command[],
): Promise<readonly Decided[]> {
  const client = await ports.pool.connect()
  let broken: Error | undefined
  try {
    const state = await openGroup(client, scopeOf(options, commands), commands)
    const now = ports.clock.now()
    const { draft, answers } = decide(commands, state, now, options)
    const heads = await writeGroup(client, draft, now)
    await commit(client)
    ports.reached('after-placement-commit')
    if (draft.kept.length > 0) ports.reached('after-request-commit')
    for (const { shard, head } of heads) ports.announcer.announce(shard, head)
    return answers
  } catch (error) {
    broken = await rollback(client, error as Error)
    throw error
  } finally {
    client.release(broken)
  }
}

async function commit(client: pg.PoolClient): Promise<void> {
  try {
    await client.query('commit')
  } catch (error) {
    throw isConnectionError(error) ? new CommitUnknown((error as Error).message) : error
  }
}

/** The error, if the connection cannot be used again. */
async function rollback(client: pg.PoolClient, error: Error): Promise<Error | undefined> {
  if (error instanceof CommitUnknown || isConnectionError(error)) return error
  try {
    await client.query('rollback')
    return undefined
  } catch (second) {
    return second as Error
  }
}

/** What everyone in the group is told when its transaction failed as a whole. */
function groupError(error: unknown): ApiError | null {
  if (error instanceof CommitUnknown) return new ApiError('OUTCOME_UNKNOWN', {}, '1')
  if (isConnectionError(error)) return new ApiError('DATABASE_UNAVAILABLE', {}, '1')
  if (isTimeout(error) || isContention(error)) return new ApiError('OVERLOADED', {}, '1')
  return null
}

function answer(command: Command, decided: Decided): void {
  if (decided instanceof ApiError) command.reject(decided)
  else command.resolve(decided.result)
}

/** A command that has waited for too long is refused before it costs anything: its sender has given up. */
function takeFresh(ports: GroupPorts, options: GroupOptions, commands: readonly Command[]): Command[] {
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
      const answers = await commitGroup(ports, options, commands)
      ports.log.debug({ order_hashes: commands.flatMap(hashesOf) }, 'group committed')
      for (const [at, command] of commands.entries()) answer(command, answers[at] as Decided)
    } catch (error) {
      if (isContention(error) && tries > 1) return attempt(commands, tries - 1)
      const shared = groupError(error)
      if (shared !== null) {
        ports.log.warn({ err: error, commands: commands.length }, 'group failed')
        for (const command of commands) command.reject(shared)
      } else if (commands.length > 1) {
        // A command that the database refuses fails alone: each gets a transaction of its own.
        for (const command of commands) await attempt([command], ATTEMPTS)
      } else {
        ports.log.error({ err: error, order_hashes: commands.flatMap(hashesOf) }, 'command failed')
        for (const command of commands) command.reject(new ApiError('INTERNAL'))
      }
    }
  }

  return async (group: readonly Command[]): Promise<void> => {
    const commands = takeFresh(ports, options, group)
    if (commands.length === 0) return
    const start = performance.now()
    await attempt(commands, ATTEMPTS)
    ports.observe(
      commands.reduce((sum, { items }) => sum + items.length, 0),
      (performance.now() - start) / 1000,
    )
  }
}
