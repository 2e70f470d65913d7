/** Waits until the machine's processors have time left, so that a runner starts a further process only then. */
import { cpus, freemem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** Ticks since the start of the machine, over all processors. */
interface Ticks {
  readonly idle: number
  readonly total: number
}

function ticksNow(): Ticks {
  const times = cpus().map(({ times }) => times)
  const idle = times.reduce((sum, each) => sum + each.idle, 0)
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0)
  return { idle, total: idle + busy }
}

/** Between 0 and 1. */
export const idleShare = (from: Ticks, to: Ticks): number =>
  to.total === from.total ? 0 : (to.idle - from.idle) / (to.total - from.total)

/** Long enough for the start of a process, with which its tests compute most, to show. */
const SAMPLE_MS = 5_000
/** Half of one of two processors: a further process uses about as much. */
const LEAST_IDLE = 0.25
/** A complete exchange with its database and chain uses about half of it. */
const LEAST_FREE_BYTES = 2 * 2 ** 30

/** Resolves with true after a sample in which a quarter of the processors was idle, with false as soon as `isOver`. */
export async function processorsAreIdle(isOver: () => boolean): Promise<boolean> {
  while (!isOver()) {
    const before = ticksNow()
    await sleep(SAMPLE_MS)
    if (idleShare(before, ticksNow()) >= LEAST_IDLE && freemem() >= LEAST_FREE_BYTES) return !isOver()
  }
  return false
}
