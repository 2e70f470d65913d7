/**
 * The time of day by the database's clock. Between two readings it continues with the process's monotonic clock, so a step of the
 * system's clock changes nothing.
 */
import type { Millis } from '../domain/units.ts'
import type { Clock } from '../service/clock.ts'
import type { Logger } from '../service/logger.ts'
import type { Db } from './client.ts'
import { readClock } from './clock.ts'

export interface DatabaseClock extends Clock {
  /** Resolves after the first reading. */
  start(): Promise<void>
  stop(): void
  /** How far the system's clock is ahead of the database's, ms; negative if it is behind. */
  skewMs(): number
}

export interface DatabaseClockPorts {
  readonly db: Db
  readonly system: Clock
  readonly metrics: { clockSkew(seconds: number): void }
  readonly logger: Logger
  /** After each reading: the database has responded. */
  readonly onReading?: (now: Millis) => void
}

const READ_MS = 1000
/** A reading that took longer is too uncertain to replace an earlier one. */
export const SLOW_READING_MS = 100
/** Until a reading is that old: by then the monotonic clock may have drifted as far. */
const OLD_READING_MS = 60_000
/** A larger difference is reported. */
export const MAX_SKEW_MS = 1000

export function createDatabaseClock(ports: DatabaseClockPorts): DatabaseClock {
  const { db, system, metrics, logger, onReading } = ports
  let offset: number | null = null
  let readAt = Number.NEGATIVE_INFINITY
  let isReading = false
  let isSkewed = false
  let timer: NodeJS.Timeout | undefined

  const now = (): Millis => {
    if (offset === null) throw new Error('the clock is used before its first reading')
    return Math.floor(performance.now() + offset) as Millis
  }
  const skewMs = (): number => system.now() - now()

  function report(): void {
    const skew = skewMs()
    metrics.clockSkew(skew / 1000)
    const wasSkewed = isSkewed
    isSkewed = Math.abs(skew) > MAX_SKEW_MS
    if (isSkewed && !wasSkewed) {
      logger.error({ skew_ms: skew, most_ms: MAX_SKEW_MS }, 'system clock differs from the database clock')
    }
  }

  async function read(): Promise<void> {
    const asked = performance.now()
    const time = await readClock(db)
    const answered = performance.now()
    if (answered - asked <= SLOW_READING_MS || answered - readAt >= OLD_READING_MS) {
      offset = time - (asked + answered) / 2
      readAt = answered
    }
    report()
    onReading?.(now())
  }

  async function readAgain(): Promise<void> {
    if (isReading) return
    isReading = true
    await read().catch((err: unknown) =>
      logger.warn({ err }, 'reading the database clock failed; will retry'),
    )
    isReading = false
  }

  return {
    now,
    skewMs,
    async start() {
      await read()
      timer = setInterval(() => void readAgain(), READ_MS)
    },
    stop: () => clearInterval(timer),
  }
}
