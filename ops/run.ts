/** The command line of `npm run ops`. */
import { parseArguments, UsageError } from '../service/command-line.ts'
import type { Env } from './connect.ts'
import { COMMANDS, runMarketCommand } from './market.ts'

const names = Object.keys(COMMANDS) as (keyof typeof COMMANDS)[]

const usage = (): string => {
  const width = Math.max(...names.map((name) => name.length))
  return [
    'usage: npm run ops -- market <command> --market <symbol> [options]; --help after a command lists its options',
    ...names.map((name) => `  ${name.padEnd(width)}  ${COMMANDS[name].help}`),
  ].join('\n')
}

async function dispatch([topic, command, ...rest]: readonly string[], env: Env): Promise<void> {
  const name = names.find((each) => each === command)
  if (topic === '--help') throw new UsageError(usage(), 0)
  if (topic !== 'market' || name === undefined) {
    const received = [topic, command].filter((word) => word !== undefined).join(' ') || 'nothing'
    throw new UsageError(`expected market and a command; received ${received}\n\n${usage()}`)
  }
  const line = { command: `npm run ops -- market ${name}`, flags: COMMANDS[name].flags }
  await runMarketCommand(name, parseArguments(line, rest), env)
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
