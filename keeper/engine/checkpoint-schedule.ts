/**
 * Starts a process that writes a checkpoint whenever the journal has grown by enough rows since the last checkpoint.
 */

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Logger } from '../../service/logger.ts'

const PROGRAM = fileURLToPath(new URL('checkpoint/main.ts', import.meta.url))

export interface CheckpointSchedule {
  /** The journal has reached this many rows. */
  reached(rows: number): void
  stop(): void
}

export interface CheckpointOptions {
  readonly databaseUrl: string
  readonly logLevel: string
  /** Rows between two checkpoints. */
  readonly every: number
  readonly logger: Logger
}

/** `rows`: of the state at the start. A checkpoint that fails is tried again after as many further rows. */
export function scheduleCheckpoints(
  { databaseUrl, logLevel, every, logger }: CheckpointOptions,
  rows: number,
): CheckpointSchedule {
  let due = rows + every
  let stop: (() => void) | null = null

  function start(): void {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { DATABASE_URL: databaseUrl, LOG_LEVEL: logLevel },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const kill = (): void => void child.kill('SIGKILL')
    stop = kill
    process.once('exit', kill)
    const ended = (): void => {
      process.off('exit', kill)
      stop = null
    }
    // A process that cannot be started never exits.
    child.once('error', (err) => {
      ended()
      logger.error({ err }, 'checkpoint process not started')
    })
    child.once('exit', (code) => {
      ended()
      if (code !== 0) logger.error({ code }, 'checkpoint process failed')
    })
  }

  return {
    reached(now) {
      if (now < due || stop !== null) return
      due = now + every
      start()
    },
    stop: () => stop?.(),
  }
}
