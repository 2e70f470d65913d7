/** The command line of `npm run account`. */
import { ClearbatchError } from '../client/errors.ts'
import { parseArguments, UsageError } from '../service/command-line.ts'
import { COMMANDS } from './commands.ts'
import { CONNECTION_FLAGS, type Env, openSession } from './connect.ts'
import { print } from './print.ts'

const usage = (): string => {
  const rows = Object.entries(COMMANDS).map(([name, { help, positionals }]) => {
    return [positionals === '' ? name : `${name} ${positionals}`, help] as const
  })
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    'usage: npm run account -- <command> [options]; --help after a command lists its options',
    ...rows.map(([name, help]) => `  ${name.padEnd(width)}  ${help}`),
  ].join('\n')
}

/** The longest command that the words begin with. */
function findCommand(words: readonly string[]): { name: string; rest: readonly string[] } | null {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ')
    if (words.length >= length && Object.hasOwn(COMMANDS, name)) return { name, rest: words.slice(length) }
  }
  return null
}

function rejectCommand(args: readonly string[]): never {
  const option = args.slice(0, 2).find((word) => word.startsWith('-'))
  const received = args[0] === undefined ? 'nothing' : args.slice(0, 2).join(' ')
  const problem =
    option === undefined ? `expected a command; received ${received}` : `Unknown option '${option}'`
  throw new UsageError(`${problem}\n\n${usage()}`)
}

async function dispatch(args: readonly string[], env: Env): Promise<void> {
  if (args[0] === '--help') throw new UsageError(usage(), 0)
  const found = findCommand(args)
  if (found === null) return rejectCommand(args)
  const command = COMMANDS[found.name] as (typeof COMMANDS)[string]
  const line = {
    command: `npm run account -- ${found.name}`,
    flags: { ...command.flags, ...CONNECTION_FLAGS },
    positionals: command.positionals,
  }
  const { positionals, ...flags } = parseArguments(line, found.rest)
  const wanted = command.positionals.split(' ').filter((word) => word !== '')
  const least = wanted.filter((word) => !word.startsWith('[')).length
  if (positionals.length < least || positionals.length > wanted.length)
    throw new UsageError(
      `expected ${command.positionals || 'no argument'}; received ${positionals.join(' ') || 'none'}\n\n` +
        `usage: ${line.command} ${command.positionals} [options]`,
    )
  const session = await openSession(flags, env)
  try {
    print(await command.run(session, positionals, flags as never), flags.json)
  } finally {
    session.client.close()
  }
}

const describe = (error: unknown): string => {
  if (!(error instanceof ClearbatchError)) return (error as Error).message
  const { message, code, outcome, details } = error
  const { field, expected, received } = details
  const facts = { code, outcome, field, expected, received }
  const known = Object.entries(facts).filter(([, value]) => value !== undefined && value !== null)
  return `${message}\n${known.map(([name, value]) => `  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`).join('\n')}`
}

/** Prints the result or the error. Returns the exit code: 2 for invalid arguments, 1 for every other error. */
export async function runAccount(args: readonly string[], env: Env): Promise<number> {
  try {
    await dispatch(args, env)
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) {
      console.error(describe(error))
      return 1
    }
    if (error.exitCode === 0) console.log(error.message)
    else console.error(error.message)
    return error.exitCode
  }
}
