/** The structured log of a process: one JSON line per event on stdout. */
import { type Logger as PinoLogger, pino } from 'pino'
import { createLogWriter, type LogWriter, openStdout } from './log-writer.ts'

/** Logger of jobs, projections and adapters. Arguments: facts as fields, then the event as text. */
export interface Logger {
  /** One line per decision, written only with `LOG_LEVEL=debug`. */
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Credentials and signatures never appear in a log. */
const REDACTED = ['req.headers.authorization', 'req.headers.cookie', '*.signature']

/** Buffer limit: several seconds of output of a busy process at level `info`. */
const MAX_BYTES = 4 * 1024 * 1024

/** One writer per process, so that its lines keep their order. */
let writer: LogWriter | undefined

function writerFor(name: string, fileBytes: number): LogWriter {
  if (writer !== undefined) return writer
  const own = createLogWriter({
    file: openStdout(fileBytes),
    maxBytes: MAX_BYTES,
    report: (dropped) =>
      `${JSON.stringify({
        level: pino.levels.values.warn,
        time: new Date().toISOString(),
        process: name,
        dropped,
        msg: 'log lines were dropped: stdout was not writable',
      })}\n`,
  })
  writer = own
  process.on('exit', () => own.flushSync())
  return own
}

/**
 * Creates a logger. Every line carries `process` and an ISO 8601 time. A line never delays the process
 * (`log-writer.ts`). `fileBytes`: size beyond which a file behind stdout is rotated; 0: never.
 */
export const createLogger = (name: string, level: string, fileBytes = 0): PinoLogger =>
  pino(
    { level, base: { process: name }, timestamp: pino.stdTimeFunctions.isoTime, redact: REDACTED },
    writerFor(name, fileBytes),
  )

/** Number of log lines that this process has dropped. */
export const droppedLogLines = (): number => writer?.dropped ?? 0

/** Writes buffered lines before the process ends. Gives up after `mostMs` if nothing reads them. */
export const flushLog = async (mostMs: number): Promise<void> => writer?.flush(mostMs)
