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

/** A line for the commands that begin with the same word. */
function groupLine(word: string, commands: readonly Command[]): string {
  const rest = commands.map(({ name }) => name.slice(word.length + 1)).filter((name) => name !== '')
  return rest.length === 0
    ? `- \`${word}\`: ${commands[0]?.help}`
    : `- \`${word}\`: ${rest.map((name) => `\`${name}\``).join(', ')}`
}

/** `docs/trade/commands.md`. */
export function reference(commands: readonly Command[]): string {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0] as string)
  return `${[
    '# The command `clearbatch`',
    '',
    'Run `npx clearbatch` after `npm install clearbatch`, or `npm run cb --` in the repository. `npm run describe` generates this page. Every command, and every group such as `account`, explains',
    'itself with `--help`: positional arguments, flags and an example. `clearbatch --help` explains the flags of every command, such as `--profile`, `--stack` and `--json`.',
    'In the repository, `npm run cb -- ops --help` lists the commands of operators.',
    '',
    'A flag wins over the environment (`CLEARBATCH_URL`, `CLEARBATCH_API_KEY_FILE` and so on), and that over the profile of `auth login`. Secrets are read from files only.',
    '',
    `Exit codes: ${EXIT_CODES.map(([code, meaning]) => `${code} ${meaning}`).join(', ')}.`,
    '',
    '## Commands',
    '',
    ...[...groups].map(([word, same]) => groupLine(word, same)),
  ].join('\n')}\n`
}
