/**
 * Dead-man switches of live feed connections. The process renews them; a switch fires after its grace period when the
 * client, the network or the process fails.
 */
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { ConnectionSwitch, ConnectionSwitchStore } from './switch-store.ts'

/** By which account and API key a connection is authenticated; `keyName` is null for an identity token. */
export interface Holder {
  readonly userId: number
  readonly keyName: string | null
}

export interface ConnectionSwitches {
  /** Arms the switch, or disarms it with 0; resolves once it is stored, with the time at which it would fire now. */
  set(connectionId: string, holder: Holder, graceSeconds: number): Promise<number | null>
  /** The connection has ended: its switch fires after its grace, and `extraMs` more in which the client was asked not to connect. */
  end(connectionId: string, extraMs?: number): void
  isArmed(connectionId: string): boolean
  stop(): Promise<void>
}

interface Armed extends Holder {
  readonly graceSeconds: number
  /** When it is written again. */
  renewAt: number
  /** When it fires, of a connection that has ended. */
  fireAt: number | null
}

/** A connection's last request, with the callers that wait for it. */
interface Requested extends Holder {
  readonly graceSeconds: number
  readonly waiting: readonly {
    readonly graceSeconds: number
    readonly answer: PromiseWithResolvers<number | null>
  }[]
}

const TURN_MS = 500
/** Renewals in the time of one grace: a switch survives the failure of all but one. */
const RENEWALS = 4
/** Maximum connections whose requests are stored together. Renewals precede further requests. */
const MOST_REQUESTED = 500

export function createConnectionSwitches(
  stored: ConnectionSwitchStore,
  clock: Clock,
  logger: Pick<Logger, 'warn'>,
): ConnectionSwitches {
  const armed = new Map<string, Armed>()
  const requested = new Map<string, Requested>()

  async function renew(): Promise<void> {
    const now = clock.now()
    const due = [...armed].filter(([, { renewAt }]) => renewAt <= now)
    const rows = due.map(([connection_id, { userId, keyName, graceSeconds, fireAt }]): ConnectionSwitch => {
      const fire_at = fireAt ?? now + graceSeconds * 1000
      return { connection_id, user_id: userId, timeout_seconds: graceSeconds, key_name: keyName, fire_at }
    })
    await stored.renew(rows)
    due.forEach(([id, one], at) => {
      // A connection that ended during the statement is written once more.
      if (one.fireAt === rows[at]?.fire_at) armed.delete(id)
      else if (one.fireAt === null) one.renewAt = now + (one.graceSeconds * 1000) / RENEWALS
    })
  }

  /** Stores the requests of some connections: one statement arms, one disarms. */
  async function store(): Promise<void> {
    const taken = [...requested].slice(0, MOST_REQUESTED)
    for (const [id] of taken) requested.delete(id)
    const now = clock.now()
    const fireAt = (graceSeconds: number): number => now + graceSeconds * 1000
    const settle = async (group: typeof taken, write: () => Promise<void>): Promise<void> => {
      if (group.length === 0) return
      try {
        await write()
        for (const [id, { userId, keyName, graceSeconds }] of group) {
          const renewAt = now + (graceSeconds * 1000) / RENEWALS
          if (graceSeconds === 0) armed.delete(id)
          else armed.set(id, { userId, keyName, graceSeconds, renewAt, fireAt: null })
        }
        for (const { graceSeconds: grace, answer } of group.flatMap(([, { waiting }]) => waiting))
          answer.resolve(grace === 0 ? null : fireAt(grace))
      } catch (error) {
        for (const { answer } of group.flatMap(([, { waiting }]) => waiting)) answer.reject(error)
      }
    }
    const [disarming = [], arming = []] = [0, 1].map((isArmed) =>
      taken.filter(([, { graceSeconds }]) => Math.sign(graceSeconds) === isArmed),
    )
    await settle(arming, () =>
      stored.arm(
        arming.map(([connection_id, { userId, keyName, graceSeconds }]) => {
          const fire_at = fireAt(graceSeconds)
          return { connection_id, user_id: userId, timeout_seconds: graceSeconds, key_name: keyName, fire_at }
        }),
      ),
    )
    await settle(disarming, () => stored.disarm(disarming.map(([id]) => id)))
  }

  /** One statement at a time, so that a renewal never arms a switch again that was disarmed meanwhile. Renewals come first. */
  async function write(): Promise<void> {
    do {
      await renew().catch((err: unknown) =>
        logger.warn({ err }, 'failed to renew the dead-man switches of connections; will retry'),
      )
      await store()
    } while (requested.size > 0)
  }

  let writing: Promise<void> | null = null
  const wake = (): void => {
    if (armed.size === 0 && requested.size === 0) return
    writing ??= write().finally(() => {
      writing = null
    })
  }
  const timer = setInterval(wake, TURN_MS)
  timer.unref()

  return {
    set(connectionId, { userId, keyName }, graceSeconds) {
      const answer = Promise.withResolvers<number | null>()
      const before = requested.get(connectionId)?.waiting ?? []
      const waiting = [...before, { graceSeconds, answer }]
      requested.set(connectionId, { userId, keyName, graceSeconds, waiting })
      wake()
      return answer.promise
    },
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
      while (writing !== null) await writing
      await write()
    },
  }
}
