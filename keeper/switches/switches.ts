/** The dead-man switch: what an account had open when its switch fired is cancelled, in every market. */

import type { Fence } from '../../db/fence.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { FiredSwitch, SwitchStore } from './ports.ts'

export interface SwitchPorts {
  readonly switches: SwitchStore
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-switch-market'>
  readonly logger: Logger
}

/** How late a switch may be taken up that was armed meanwhile. */
const LOOK_MS = 250

/**
 * Takes what is due, and sees every fired switch through. One transaction per market cancels for all of them at once; a switch is
 * forgotten last, so a crash between two markets loses nothing, and what was cancelled before it is simply not there any more.
 * Returns how long to wait.
 */
export async function runSwitches(ports: SwitchPorts, fence: Fence): Promise<number> {
  const { switches, clock } = ports
  await switches.fire(fence, clock.now())
  const fired = await switches.fired()
  if (fired.length === 0) return pauseUntil(await switches.nextAt(), clock.now())
  await cancelEverywhere(ports, fence, fired)
  await switches.forget(fence, fired)
  return 0
}

/** A market in trouble does not keep the others waiting; its trouble is told when they are done. */
async function cancelEverywhere(
  { switches, clock, killPoint, logger }: SwitchPorts,
  fence: Fence,
  fired: readonly FiredSwitch[],
): Promise<void> {
  const problems: unknown[] = []
  let orders = 0
  for (const marketId of await switches.markets()) {
    try {
      orders += await switches.cancel(fence, marketId, fired, clock.now())
    } catch (problem) {
      problems.push(problem)
    }
    killPoint('after-switch-market')
  }
  logger.info({ accounts: fired.length, orders, failed: problems.length }, 'dead-man switches have fired')
  if (problems.length > 0) throw problems[0]
}

const pauseUntil = (next: Millis | null, now: Millis): number =>
  next === null ? LOOK_MS : Math.max(0, Math.min(LOOK_MS, next - now))
