/** The dead-man switch: unless it is armed again in time, the keeper cancels every live order of the account. */
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import { isoTime } from '../wire/amounts.ts'
import { SWITCH_SECONDS, type SwitchAnswer } from './schema.ts'
import type { SwitchStore } from './switch-store.ts'

export interface CancelSwitch {
  /** Arms the switch from now on, or disarms it with 0. */
  set(userId: number, timeoutSeconds: number): Promise<SwitchAnswer>
  show(userId: number): Promise<SwitchAnswer>
}

interface Armed {
  readonly timeout_seconds: number
  readonly fire_at: number
}

const view = (armed: Armed | undefined, now: number): SwitchAnswer => ({
  armed: armed !== undefined,
  timeout_seconds: armed?.timeout_seconds ?? null,
  fire_at: armed === undefined ? null : isoTime(armed.fire_at),
  remaining_seconds: armed === undefined ? null : Math.max(0, armed.fire_at - now) / 1000,
  server_time: isoTime(now),
})

/** The schema has checked the other bounds. */
export function checkTimeout(field: string, seconds: number): void {
  const { least, most } = SWITCH_SECONDS
  if (seconds === 0 || seconds >= least) return
  throw new ApiError('INVALID_FIELD', {
    field,
    expected: `${least} to ${most}, or 0 to disarm`,
    received: seconds,
    nearest_valid: least,
  })
}

export function createCancelSwitch(db: Db, clock: Clock, store: SwitchStore): CancelSwitch {
  return {
    async set(userId, timeoutSeconds) {
      checkTimeout('timeout_seconds', timeoutSeconds)
      const fire_at = await store.set(userId, timeoutSeconds)
      const armed = fire_at === null ? undefined : { timeout_seconds: timeoutSeconds, fire_at }
      return view(armed, armed === undefined ? clock.now() : armed.fire_at - timeoutSeconds * 1000)
    },
    async show(userId) {
      const armed = await db
        .selectFrom('cancel_switches')
        .select(['timeout_seconds', 'fire_at'])
        .where('user_id', '=', userId)
        .executeTakeFirst()
      return view(armed, clock.now())
    },
  }
}
