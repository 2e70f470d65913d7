/** One transaction for a group of commands of one market. Every command is answered, and only after the commit. */
import type pg from 'pg'
import { isConnectionError, isContention, isTimeout } from '../database-errors.ts'
import { ApiError } from '../errors.ts'
import type { Clock, Reached } from '../ports.ts'
import type { Announcer } from './announce.ts'
import type { Cancelled, Command, Placed } from './commands.ts'
import { type Ages, decide } from './decide.ts'
import { openGroup } from './state.ts'
import { writeGroup } from './write.ts'

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

/** Commits the group and returns its answers. Throws where nothing was stored, or CommitUnknown. */
async function commitGroup(
  ports: GroupPorts,
  options: GroupOptions,
  marketId: number,
  commands: readonly Command[],
) {
  const client = await ports.pool.connect()
  let broken: Error | undefined
  try {
    const state = await openGroup(client, options.chainId, marketId, commands)
    const { writes, answers } = decide(commands, state, ports.clock.now(), options)
    const head = await writeGroup(client, marketId, state.head, writes)
    await commit(client)
    ports.reached('after-placement-commit')
    if (head > state.head.head) ports.announcer.announce(marketId, head)
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

function answer(command: Command, result: Placed | Cancelled | ApiError): void {
  if (result instanceof ApiError) command.reject(result)
  // `decide` answers a placement with Placed and a cancel with Cancelled.
  else command.resolve(result as Placed & Cancelled)
}

const hashOf = (command: Command): string => (command.kind === 'place' ? command.order.hash : command.hash)

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
  const attempt = async (marketId: number, commands: readonly Command[], tries: number): Promise<void> => {
    try {
      const answers = await commitGroup(ports, options, marketId, commands)
      ports.log.debug({ market_id: marketId, order_hashes: commands.map(hashOf) }, 'group committed')
      for (const [at, command] of commands.entries()) answer(command, answers[at] as (typeof answers)[number])
    } catch (error) {
      if (isContention(error) && tries > 1) return attempt(marketId, commands, tries - 1)
      const shared = groupError(error)
      if (shared !== null) {
        ports.log.warn({ err: error, market_id: marketId, commands: commands.length }, 'group failed')
        for (const command of commands) command.reject(shared)
      } else if (commands.length > 1) {
        // A command that the database refuses fails alone: each gets a transaction of its own.
        for (const command of commands) await attempt(marketId, [command], ATTEMPTS)
      } else {
        ports.log.error({ err: error, market_id: marketId }, 'command failed')
        for (const command of commands) command.reject(new ApiError('INTERNAL'))
      }
    }
  }

  return async (marketId: number, group: readonly Command[]): Promise<void> => {
    const commands = takeFresh(ports, options, group)
    if (commands.length === 0) return
    const start = performance.now()
    await attempt(marketId, commands, ATTEMPTS)
    ports.observe(commands.length, (performance.now() - start) / 1000)
  }
}
