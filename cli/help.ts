/** Help for the terminal and the reference in docs/, from the table of commands. */
import type { Flags } from '../service/command-line.ts'
import type { Command } from './command.ts'
import { EXIT } from './failure.ts'
import { GLOBAL_FLAGS } from './global-flags.ts'

const columns = (rows: readonly (readonly [string, string])[]): string[] => {
  const width = Math.max(0, ...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}

const flagRows = (flags: Flags): [string, string][] =>
  Object.entries(flags).map(([name, { placeholder, help }]) => [
    placeholder === null ? `--${name}` : `--${name} ${placeholder}`,
    help,
  ])

const titleOf = ({ name, positionals }: Command): string =>
  positionals === '' ? name : `${name} ${positionals}`

export const overview = (commands: readonly Command[], words: readonly string[] = []): string => {
  const prefix = words.join(' ')
  const listed = commands.filter(
    ({ name }) => prefix === '' || name === prefix || name.startsWith(`${prefix} `),
  )
  return [
    `usage: clearbatch ${prefix === '' ? '' : `${prefix} `}<command> [options]`,
    '',
    ...columns(listed.map((command) => [titleOf(command), command.help] as const)),
    '',
    '`clearbatch <command> --help` lists the options of a command. All commands take:',
    ...columns(flagRows(GLOBAL_FLAGS)),
    '',
    `exit codes: ${EXIT_CODES.map(([code, meaning]) => `${code} ${meaning}`).join(' · ')}`,
  ].join('\n')
}

export const helpOf = (command: Command): string =>
  [
    `${command.help}`,
    '',
    `usage: clearbatch ${titleOf(command)} [options]`,
    ...columns(flagRows(command.flags)),
    '',
    `example: ${command.example}`,
    '`clearbatch --help` lists the options of all commands, such as --profile and --json.',
  ].join('\n')

export const EXIT_CODES: readonly (readonly [number, string])[] = [
  [EXIT.done, 'done'],
  [EXIT.refused, 'refused'],
  [EXIT.usage, 'wrong usage'],
  [EXIT.unknown, 'outcome unknown: compare with the account'],
  [EXIT.unauthorized, 'not authorised'],
  [EXIT.unavailable, 'unavailable or rate limited'],
  [EXIT.unverified, 'verification failed'],
]

// ---------------------------------------------------------------------- the reference

/** A flag with one meaning in at least so many commands is explained once, above them. */
const SHARED_BY = 3

/** Flag to its most frequent meaning, of the flags that several of these commands share. */
function sharedFlags(commands: readonly Command[]): ReadonlyMap<string, string> {
  const uses = Map.groupBy(
    commands.flatMap(({ flags }) => flagRows(flags)),
    (row) => row.join('\n'),
  )
  const shared = [...uses.values()]
    .filter((same) => same.length >= SHARED_BY)
    .toSorted((a, b) => a.length - b.length)
    .map(([first]) => first as [string, string])
  // The most frequent meaning is the last one, and replaces earlier meanings.
  return new Map(shared)
}

const flagLine = ([flag, help]: readonly [string, string]): string => `- \`${flag}\`: ${help}`

/** At most so many characters of flags are on one line. */
const LINE = 160

/** The help of the command, then its flags, which `--help` explains. */
function itemOf(command: Command): string {
  const lines: string[] = []
  for (const flag of Object.keys(command.flags)) {
    const last = lines.at(-1)
    if (last === undefined || last.length > LINE) lines.push(`\`--${flag}\``)
    else lines[lines.length - 1] = `${last}, \`--${flag}\``
  }
  return [`- \`${titleOf(command)}\`: ${command.help}.`, ...lines].join('\n  ')
}

/** `docs/trade/commands.md`. */
export function reference(commands: readonly Command[]): string {
  const shared = sharedFlags(commands)
  return `${[
    '# The command `clearbatch`',
    '',
    'Run `npx clearbatch` after `npm install clearbatch`, or `npm run cb --` in the repository. `npm run describe` generates this page.',
    '',
    'A flag wins over the environment (`CLEARBATCH_URL`, `CLEARBATCH_API_KEY_FILE` and so on), and that over the profile of `auth login`. Secrets are read from files only.',
    '`clearbatch <command> --help` explains the flags of a command and prints an example. In the repository, `npm run cb -- ops --help` lists the commands of operators.',
    '',
    `Exit codes: ${EXIT_CODES.map(([code, meaning]) => `${code} ${meaning}`).join(', ')}.`,
    '',
    '## Flags of every command',
    '',
    ...flagRows(GLOBAL_FLAGS).map(flagLine),
    '',
    '## Flags of several commands',
    '',
    ...[...shared].toSorted(([a], [b]) => a.localeCompare(b)).map(flagLine),
    '',
    '## Commands',
    '',
    ...commands.map(itemOf),
  ].join('\n')}\n`
}
