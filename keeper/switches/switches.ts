/** Dead-man switches: when the switch of an account fires, the account's open orders are cancelled in every market. */

import type { Fence } from '../../db/fence.ts'
import { MAX_ORDERS_PER_TURN } from '../../domain/auction/turn-bound.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { FiredSwitch, SwitchStore } from './ports.ts'
import type { Reachability } from './reachability.ts'

export interface SwitchPorts {
  readonly switches: SwitchStore
  readonly reachability: Reachability
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-switch-market'>
  readonly logger: Logger
}

/** Far less than the shortest time of a switch: one that is armed while the job waits is found before it is due. */
const POLL_MS = 500

/**
 * Fires the switches that are due and completes all fired ones. In each market, transactions of bounded size cancel the orders of all fired
 * accounts. A fired switch is deleted last, so a crash between two markets loses nothing: the next pass repeats the markets, and finds no orders
 * where they are already cancelled. Returns the pause before the next pass, ms.
 */
export async function fireSwitches(ports: SwitchPorts, fence: Fence): Promise<number> {
  const { switches, clock, reachability } = ports
  const reached = <T>(result: T): T => {
    reachability.reached(clock.now())
    return result
  }
  const { dueAt, hasFired } = reached(await switches.next())
  const now = clock.now()
  if (!hasFired && (dueAt === null || dueAt > now)) return pauseUntil(dueAt, now)
  reached(await switches.fire(fence, now, reachability.since(now)))
  const fired = reached(await switches.fired())
  if (fired.length === 0) return pauseUntil(reached(await switches.next()).dueAt, clock.now())
  await cancelEverywhere(ports, fence, fired)
  reached(await switches.forget(fence, fired))
  return 0
}

/** An error in one market does not delay the others: the first error is thrown after all markets. */
async function cancelEverywhere(
  { switches, clock, killPoint, logger, reachability }: SwitchPorts,
  fence: Fence,
  fired: readonly FiredSwitch[],
): Promise<void> {
  const errors: unknown[] = []
  let orders = 0
  const markets = await switches.markets(fired)
  reachability.reached(clock.now())
  for (const marketId of markets) {
    try {
      for (let cancelled = MAX_ORDERS_PER_TURN; cancelled === MAX_ORDERS_PER_TURN; orders += cancelled) {
        cancelled = await switches.cancel(fence, marketId, fired, clock.now())
        reachability.reached(clock.now())
      }
    } catch (error) {
      errors.push(error)
    }
    killPoint('after-switch-market')
  }
  logger.info({ accounts: fired.length, orders, failed: errors.length }, 'dead-man switches fired')
  if (errors.length > 0) throw errors[0]
}

/** A switch that is due already waits until the database has been reachable for its grace. */
const pauseUntil = (next: Millis | null, now: Millis): number =>
  next === null || next <= now ? POLL_MS : Math.min(POLL_MS, next - now)
