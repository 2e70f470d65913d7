/** The structured log of a process: one JSON line per event on stdout. */
import { type Logger as PinoLogger, pino } from 'pino'

/** What jobs, projections and adapters log through: facts as fields, then the event in words. */
export interface Logger {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Credentials and signatures never appear in a log. */
const REDACTED = ['req.headers.authorization', 'req.headers.cookie', '*.signature']

/**
 * Every line carries `process` and an ISO 8601 time. Written synchronously: with pino's asynchronous default, the flush at exit can
 * overtake a write in flight, so that the last lines before an exit appear out of order.
 */
export const createLogger = (name: string, level: string): PinoLogger =>
  pino(
    { level, base: { process: name }, timestamp: pino.stdTimeFunctions.isoTime, redact: REDACTED },
    pino.destination({ dest: 1, sync: true }),
  )
