/** The command line of `npm run ops`. */
import { type Flags, parseArguments, UsageError } from '../service/command-line.ts'
import { CALENDAR_COMMANDS, runCalendarCommand } from './calendar.ts'
import type { Env } from './connect.ts'
import { COMMANDS, runMarketCommand } from './market.ts'

interface Topic {
  readonly commands: Readonly<Record<string, { readonly help: string; readonly flags: Flags }>>
  readonly run: (name: never, flags: never, env: Env) => Promise<void>
}

const TOPICS: Readonly<Record<string, Topic>> = {
  market: { commands: COMMANDS, run: runMarketCommand },
  calendar: { commands: CALENDAR_COMMANDS, run: runCalendarCommand },
}

const usage = (): string => {
  const rows = Object.entries(TOPICS).flatMap(([topic, { commands }]) =>
    Object.entries(commands).map(([name, { help }]) => [`${topic} ${name}`, help] as const),
  )
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    'usage: npm run ops -- <topic> <command> [options]; --help after a command lists its options',
    ...rows.map(([name, help]) => `  ${name.padEnd(width)}  ${help}`),
  ].join('\n')
}

async function dispatch([topic = '', name = '', ...rest]: readonly string[], env: Env): Promise<void> {
  if (topic === '--help') throw new UsageError(usage(), 0)
  const found = Object.hasOwn(TOPICS, topic) ? TOPICS[topic] : undefined
  const command =
    found !== undefined && Object.hasOwn(found.commands, name) ? found.commands[name] : undefined
  if (found === undefined || command === undefined) {
    const option = [topic, name].find((word) => word.startsWith('-'))
    const received = [topic, name].join(' ').trim() || 'nothing'
    const expected = `expected ${Object.keys(TOPICS).join(' or ')} and a command; received ${received}`
    throw new UsageError(`${option === undefined ? expected : `Unknown option '${option}'`}\n\n${usage()}`)
  }
  const line = { command: `npm run ops -- ${topic} ${name}`, flags: command.flags }
  await found.run(name as never, parseArguments(line, rest) as never, env)
}

/** Prints the result or the error. Returns the exit code: 2 for invalid arguments, 1 for every other error. */
export async function runOps(args: readonly string[], env: Env): Promise<number> {
  try {
    await dispatch(args, env)
    return 0
  } catch (error) {
    const exitCode = error instanceof UsageError ? error.exitCode : 1
    const { message } = error as Error
    if (exitCode === 0) console.log(message)
    else console.error(message)
    return exitCode
  }
}
