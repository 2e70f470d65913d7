/** One run of `clearbatch`: from the arguments to the exit code. */
import { existsSync } from 'node:fs'
import { UsageError } from '../service/command-line.ts'
import type { Command } from './command.ts'
import { complete } from './complete.ts'
import type { Env } from './config.ts'
import type { Context } from './context.ts'
import { EXIT, type ExitCode, failureOf, failureText } from './failure.ts'
import type { GlobalValues } from './global-flags.ts'
import { helpOf, overview } from './help.ts'
import { findCommand, parse } from './parse.ts'
import { harmless, rendered } from './print.ts'
import { COMMANDS } from './table.ts'
import { type Streams, Terminal } from './terminal.ts'
import { versionOf } from './version.ts'

/** They run or administer an exchange: the npm package names them and has none of them. */
export const REPOSITORY_COMMANDS = ['start', 'ops', 'db', 'replay', 'feed', 'simulate', 'cluster'] as const

interface RepositoryTable {
  repositoryCommands(): Promise<readonly Command[]>
}

/** In variables, so that the package is built without the files. */
const TABLE_FILE = new URL(
  `./repository/table${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
)

/** Null in the npm package. */
export async function repositoryTable(): Promise<RepositoryTable | null> {
  return existsSync(TABLE_FILE) ? ((await import(TABLE_FILE.href)) as RepositoryTable) : null
}

export interface Runtime {
  readonly env: Env
  readonly streams: Streams
  readonly stopping: AbortSignal
}

const isRepositoryWord = (word: string | undefined): boolean =>
  REPOSITORY_COMMANDS.some((each) => each === word)

/** Loads the commands of the repository only where they can be meant: some of them load much. */
async function commandsFor(args: readonly string[]): Promise<readonly Command[]> {
  const isNeeded = isRepositoryWord(args[0]) || args[0] === 'complete'
  const table = isNeeded ? await repositoryTable() : null
  if (table !== null) return [...COMMANDS, ...(await table.repositoryCommands())]
  if (isRepositoryWord(args[0]))
    throw new UsageError(
      `${args[0]} runs an exchange and is not in the npm package: use it in the repository, with \`npm run cb -- ${args[0]}\``,
    )
  return COMMANDS
}

/** Answers help, the version and completions; null for every other command line. */
function answer(commands: readonly Command[], args: readonly string[]): string | null {
  const [first] = args
  if (first === '--version') return versionOf()
  if (first === 'complete') return complete(commands, args.slice(args[1] === '--' ? 2 : 1)).join('\n')
  const isHelp = args.length === 0 || first === 'help' || args.includes('--help') || args.includes('-h')
  if (!isHelp) return null
  const words = args.filter((word) => !word.startsWith('-') && word !== 'help')
  const command = findCommand(commands, words)
  if (command !== null) return helpOf(command)
  const known = words.length > 0 && commands.some(({ name }) => name.startsWith(`${words.join(' ')} `))
  if (!known && words.length > 0) return null
  const repository = known
    ? ''
    : `\n\nin the repository also: ${REPOSITORY_COMMANDS.join(', ')} (\`clearbatch start --help\`)`
  return overview(commands, words) + repository
}

export async function run(args: readonly string[], { env, streams, stopping }: Runtime): Promise<ExitCode> {
  const terminal = new Terminal(streams, env)
  let kind: Command['kind'] = 'tool'
  let context: Context | null = null
  let flags: GlobalValues = {
    json: args.includes('--json') || args.includes('--jsonl'),
    debug: args.includes('--debug'),
  }
  try {
    const commands = await commandsFor(args)
    const text = answer(commands, args)
    if (text !== null) {
      terminal.out(text)
      return EXIT.done
    }
    const parsed = parse(commands, longFlags(args))
    kind = parsed.command.kind
    flags = parsed.flags
    // Loaded late: help and completions answer without the client.
    const module = await import('./context.ts')
    context = new module.Context(flags, env, terminal, stopping)
    await execute(parsed.command, parsed.args, context)
    return EXIT.done
  } catch (error) {
    // Before its first request with an effect, a command that trades has only read.
    const lost = kind === 'trade' && context?.hasPosted === false ? 'read' : kind
    report(error, lost, flags, terminal)
    return failureOf(error, lost).exitCode
  }
}

async function execute(
  command: Command,
  args: Readonly<Record<string, unknown>>,
  context: Context,
): Promise<void> {
  try {
    const run = await command.load()
    const result = await run(context, args as never)
    if (result === undefined) return
    const text = rendered(result, context.format)
    const isOwnText = typeof result === 'string' && context.format === 'text'
    context.terminal.out(
      isOwnText || context.format !== 'text' ? text : text.split('\n').map(harmless).join('\n'),
    )
  } finally {
    context.close()
  }
}

function report(error: unknown, kind: Command['kind'], flags: GlobalValues, terminal: Terminal): void {
  const failure = failureOf(error, kind)
  const { message, details } = failure
  if (flags.debug) terminal.note((error as Error).stack ?? String(error))
  if (flags.json || flags.jsonl) terminal.note(JSON.stringify({ message, details }))
  else if (!flags.debug) terminal.note(failureText(failure).split('\n').map(harmless).join('\n'))
}

const SHORT: Readonly<Record<string, string>> = { '-o': '--output', '-y': '--yes' }

const longFlags = (args: readonly string[]): readonly string[] => args.map((word) => SHORT[word] ?? word)
