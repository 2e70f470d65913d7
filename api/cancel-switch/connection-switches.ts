/**
 * The dead-man switches of connections to the live feed. The process renews the switch of each connection that it holds, so that the
 * switch fires after its grace whatever ends the connection: its client, the network, or this process.
 */
import {
  armConnectionSwitches,
  type ConnectionSwitch,
  disarmConnectionSwitch,
} from '../../db/cancel-switches.ts'
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'

export interface ConnectionSwitches {
  /** Arms the switch, or disarms it with 0; resolves once it is stored, with the time at which it would fire now. */
  set(connectionId: string, userId: number, graceSeconds: number): Promise<number | null>
  /** The connection has ended: its switch fires after its grace, and `extraMs` more in which the client was asked not to connect. */
  end(connectionId: string, extraMs?: number): void
  isArmed(connectionId: string): boolean
  stop(): Promise<void>
}

interface Armed {
  readonly userId: number
  readonly graceSeconds: number
  /** When it is written again. */
  renewAt: number
  /** When it fires, of a connection that has ended. */
  fireAt: number | null
}

const TURN_MS = 500
/** Renewals in the time of one grace: a switch survives the failure of all but one. */
const RENEWALS = 4

export function createConnectionSwitches(
  db: Db,
  clock: Clock,
  logger: Pick<Logger, 'warn'>,
): ConnectionSwitches {
  const armed = new Map<string, Armed>()
  // One statement at a time, so that a renewal never arms a switch again that was disarmed meanwhile.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <Value>(work: () => Promise<Value>): Promise<Value> => {
    const next = last.then(work, work)
    last = next.catch(() => {})
    return next
  }

  async function renew(): Promise<void> {
    const now = clock.now()
    const due = [...armed].filter(([, { renewAt }]) => renewAt <= now)
    const rows = due.map(([connection_id, { userId, graceSeconds, fireAt }]): ConnectionSwitch => {
      const fire_at = fireAt ?? now + graceSeconds * 1000
      return { connection_id, user_id: userId, timeout_seconds: graceSeconds, fire_at }
    })
    await armConnectionSwitches(db, rows)
    due.forEach(([id, one], at) => {
      // A connection that ended during the statement is written once more.
      if (one.fireAt === rows[at]?.fire_at) armed.delete(id)
      else if (one.fireAt === null) one.renewAt = now + (one.graceSeconds * 1000) / RENEWALS
    })
  }

  let isRenewing = false
  const turn = async (): Promise<void> => {
    if (isRenewing || armed.size === 0) return
    isRenewing = true
    await inTurn(renew).catch((err: unknown) =>
      logger.warn({ err }, 'failed to renew the dead-man switches of connections; will retry'),
    )
    isRenewing = false
  }
  const timer = setInterval(() => void turn(), TURN_MS)
  timer.unref()

  return {
    set: (connectionId, userId, graceSeconds) =>
      inTurn(async () => {
        if (graceSeconds === 0) {
          await disarmConnectionSwitch(db, connectionId)
          armed.delete(connectionId)
          return null
        }
        const now = clock.now()
        const fireAt = now + graceSeconds * 1000
        await armConnectionSwitches(db, [
          { connection_id: connectionId, user_id: userId, timeout_seconds: graceSeconds, fire_at: fireAt },
        ])
        const renewAt = now + (graceSeconds * 1000) / RENEWALS
        armed.set(connectionId, { userId, graceSeconds, renewAt, fireAt: null })
        return fireAt
      }),
    end(connectionId, extraMs = 0) {
      const found = armed.get(connectionId)
      if (found === undefined || found.fireAt !== null) return
      const now = clock.now()
      found.fireAt = now + found.graceSeconds * 1000 + extraMs
      found.renewAt = now
    },
    isArmed: (connectionId) => armed.has(connectionId),
    async stop() {
      clearInterval(timer)
      await inTurn(renew).catch((err: unknown) =>
        logger.warn({ err }, 'failed to renew the dead-man switches of connections'),
      )
    },
  }
}
