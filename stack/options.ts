/** Options of the stack, and the flags of `clearbatch start`. */
import { resolve } from 'node:path'
import type { CalendarName } from '../domain/market/trading-calendar.ts'
import {
  type Arguments,
  parseArguments,
  text,
  toggle,
  UsageError,
  wholeNumber,
  withDefault,
} from '../service/command-line.ts'
import type { Adapt } from './process-spec.ts'

export interface StackOptions {
  readonly port: number
  readonly dataDir: string
  /** Delete the saved state first. */
  readonly fresh: boolean
  readonly bots: boolean
  /** Whether the api serves the page, which is built if its sources have changed. The default is no. */
  readonly page?: boolean
  /** Whether a backstop inherits positions and its process closes them; tests of other subjects do without. The default is yes. */
  readonly backstop?: boolean
  /** Whether a second engine member follows the first and takes over from it. Default: no. */
  readonly standby?: boolean
  /** The trading calendar of the stock market; the default is ALWAYS_OPEN. */
  readonly calendar?: CalendarName
  /** Whether the chain is saved; measurements do without, because every save writes all blocks. The default is yes. */
  readonly savesChain?: boolean
  /** Run-time parameters of Postgres, for measurements. */
  readonly databaseSettings?: readonly string[]
  /** Changes a process before it starts, for example its addresses to those of proxies. */
  readonly adapt?: Adapt
}

/** An error of which the command prints only the message, without a stack trace. */
export class StackError extends Error {
  override readonly name = 'StackError'
}

export const START_FLAGS = {
  port: withDefault(
    wholeNumber('port of the REST interface; 0 for any free port', { most: 65_535, kind: 'a port number' }),
    8080,
  ),
  'data-dir': withDefault(text('<path>', 'folder of the state'), '.clearbatch'),
  fresh: toggle('delete the saved state first'),
  'no-bots': toggle('start without demo traders'),
  'always-open': toggle('keep the session of the stock market open at all hours (the default)'),
  calendar: toggle('open and close the session of the stock market by the New York trading calendar'),
} as const

export type StartValues = Omit<Arguments<typeof START_FLAGS>, 'positionals'>

/** Throws a UsageError. */
export function optionsOf({ port, fresh, ...more }: StartValues): StackOptions {
  if (more.calendar && more['always-open'])
    throw new UsageError('--calendar and --always-open exclude each other')
  const calendar = more.calendar ? 'NYSE' : 'ALWAYS_OPEN'
  const dataDir = resolve(more['data-dir'])
  return { port, dataDir, fresh, bots: !more['no-bots'], page: true, calendar }
}

/** Throws a UsageError. */
export const readOptions = (args: readonly string[]): StackOptions =>
  optionsOf(parseArguments({ command: 'npm start --', flags: START_FLAGS }, args))
