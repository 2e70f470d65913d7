/** Finds the command of a command line and reads its flags. What is unknown is answered with the nearest known word. */
import { type Flags, parseArguments, UsageError } from '../service/command-line.ts'
import type { Command } from './command.ts'
import { GLOBAL_FLAGS, type GlobalValues } from './global-flags.ts'

export interface Parsed {
  readonly command: Command
  readonly args: Readonly<Record<string, unknown>> & { readonly positionals: readonly string[] }
  readonly flags: GlobalValues
}

/** Changes of one letter that turn one word into the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 0; j < to.length; j++)
      next.push(
        Math.min(
          (next[j] as number) + 1,
          (row[j + 1] as number) + 1,
          (row[j] as number) + (letter === to[j] ? 0 : 1),
        ),
      )
    row = next
  }
  return row[to.length] as number
}

/** The known word that the unknown one may mean; undefined if none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((each) => ({ each, away: each.startsWith(word) && word.length > 1 ? 0 : distance(word, each) }))
    .sort((a, b) => a.away - b.away)
  const [best] = ranked
  return best !== undefined && best.away <= Math.max(2, Math.floor(word.length / 3)) ? best.each : undefined
}

const meant = (word: string, known: readonly string[]): string => {
  const found = nearest(word, known)
  return found === undefined ? '' : ` Did you mean ${found}?`
}

/** The words before the first flag. */
function wordsOf(args: readonly string[]): readonly string[] {
  const end = args.findIndex((word) => word.startsWith('-'))
  return end === -1 ? args : args.slice(0, end)
}

/** The longest command that the words begin with. */
export function findCommand(commands: readonly Command[], words: readonly string[]): Command | null {
  for (let length = Math.min(3, words.length); length > 0; length--) {
    const name = words.slice(0, length).join(' ')
    const found = commands.find((each) => each.name === name)
    if (found !== undefined) return found
  }
  return null
}

/** The words of commands that can follow. */
export function nextWords(commands: readonly Command[], words: readonly string[]): readonly string[] {
  const prefix = words.length === 0 ? '' : `${words.join(' ')} `
  const following = commands
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name }) => name.slice(prefix.length).split(' ')[0] as string)
  return [...new Set(following)]
}

/** Throws for words that begin no command. */
export function rejectWords(commands: readonly Command[], words: readonly string[]): never {
  for (let length = 0; length < words.length; length++) {
    const known = nextWords(commands, words.slice(0, length))
    const word = words[length] as string
    if (known.length > 0 && !known.includes(word)) {
      const where = length === 0 ? '' : ` after ${words.slice(0, length).join(' ')}`
      throw new UsageError(
        `unknown command ${word}${where}.${meant(word, known)} \`clearbatch --help\` lists all commands`,
      )
    }
  }
  const known = nextWords(commands, words)
  throw new UsageError(`${words.join(' ')} needs one of: ${known.join(', ')}`)
}

/** Throws a UsageError for an unknown command, an unknown or invalid flag, or a wrong number of arguments. */
export function parse(commands: readonly Command[], args: readonly string[]): Parsed {
  const words = wordsOf(args)
  const command = findCommand(commands, words)
  if (command === null) return rejectWords(commands, words)
  const rest = args.slice(command.name.split(' ').length)
  // A flag of the command comes before one of all commands: `ops market claim --account <address>`.
  const declared: Flags = { ...GLOBAL_FLAGS, ...command.flags }
  checkFlags(command, rest, Object.keys(declared))
  const line = {
    command: `clearbatch ${command.name}`,
    flags: declared,
    positionals: command.positionals,
  }
  const values = inOneLine(command, () => parseArguments(line, rest))
  checkPositionals(command, values.positionals)
  const own = Object.fromEntries(Object.keys(command.flags).map((name) => [name, values[name]]))
  const shared = Object.fromEntries(
    Object.keys(GLOBAL_FLAGS)
      .filter((name) => !Object.hasOwn(command.flags, name))
      .map((name) => [name, values[name]]),
  )
  return { command, args: { ...own, positionals: values.positionals }, flags: shared as GlobalValues }
}

function checkFlags(command: Command, rest: readonly string[], known: readonly string[]): void {
  const end = rest.indexOf('--')
  for (const word of end === -1 ? rest : rest.slice(0, end)) {
    if (!word.startsWith('-') || /^-[\d.]/.test(word) || word === '-') continue
    const name = word.replace(/^-+/, '').split('=')[0] as string
    if (!word.startsWith('--') || !known.includes(name))
      throw new UsageError(
        `unknown flag ${word.split('=')[0]} of ${command.name}.${meant(
          `--${name}`,
          known.map((each) => `--${each}`),
        )} \`clearbatch ${command.name} --help\` lists its flags`,
      )
  }
}

/** The complete usage is in `--help`: an error is one line. */
function inOneLine<Value>(command: Command, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const [problem = ''] = error.message.split('\n')
    throw new UsageError(
      `${problem.replace(/\.$/, '')}. \`clearbatch ${command.name} --help\` lists its flags`,
    )
  }
}

function checkPositionals({ name, positionals }: Command, received: readonly string[]): void {
  const wanted = positionals.split(' ').filter(Boolean)
  const least = wanted.filter((word) => !word.startsWith('[')).length
  const most = wanted.some((word) => word.includes('...')) ? Number.POSITIVE_INFINITY : wanted.length
  if (received.length >= least && received.length <= most) return
  throw new UsageError(
    `${name} expects ${positionals || 'no argument'}; received ${received.join(' ') || 'none'}. \`clearbatch ${name} --help\` shows an example`,
  )
}
