/** Dead-man switches, which are in the state of the engine. */

import type { UserId } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { EngineCalls } from '../engine-reply.ts'

export interface ConnectionSwitch {
  readonly connection_id: string
  readonly user_id: number
  readonly timeout_seconds: number
  /** Name of the connection's API key; null for an identity token. */
  readonly key_name: string | null
  readonly fire_at: number
}

export interface SwitchStore {
  /** Arms the account's switch, or disarms it with 0; resolves with the time at which it fires. */
  set(userId: number, timeoutSeconds: number): Promise<number | null>
}

export interface ConnectionSwitchStore {
  arm(switches: readonly ConnectionSwitch[]): Promise<void>
  renew(switches: readonly ConnectionSwitch[]): Promise<void>
  disarm(connections: readonly string[]): Promise<void>
}

/** The engine counts the deadlines of connections itself, from the arrival of each renewal, so that clocks of processes do not matter. */
export function createEngineSwitches(engine: EngineCalls, clock: Clock): SwitchStore & ConnectionSwitchStore {
  const hold = async (switches: readonly ConnectionSwitch[]): Promise<void> => {
    if (switches.length === 0) return
    const now = clock.now()
    const { refused } = await engine.ask({
      kind: 'hold_connections',
      connections: switches.map(({ connection_id, user_id, timeout_seconds, key_name, fire_at }) => ({
        connectionId: connection_id,
        userId: user_id as UserId,
        timeoutSeconds: timeout_seconds,
        keyName: key_name,
        fireInMs: Math.max(0, fire_at - now),
      })),
    })
    if (refused.length > 0)
      throw new Error(`the engine does not have the users of ${refused.length} connections`)
  }
  return {
    async set(userId, timeoutSeconds) {
      const answer = await engine.ask({ kind: 'set_switch', userId: userId as UserId, timeoutSeconds })
      if (answer.kind === 'refused') throw new Error(`the engine does not have the user ${answer.received}`)
      return answer.fireAt
    },
    arm: hold,
    renew: hold,
    async disarm(connections) {
      if (connections.length > 0) await engine.ask({ kind: 'end_connections', connections })
    },
  }
}
