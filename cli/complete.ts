/** Completes a command line: words that can replace the last, partly typed word. */
import type { Flags } from '../service/command-line.ts'
import type { Command } from './command.ts'
import { GLOBAL_FLAGS } from './global-flags.ts'
import { findCommand, nextWords } from './parse.ts'

/** Values of a flag with a list of words, such as `LONG|SHORT`. */
const valuesOf = (placeholder: string | null): readonly string[] =>
  placeholder !== null && /^[\w./-]+(\|[\w./-]+)+$/.test(placeholder) ? placeholder.split('|') : []

export function complete(commands: readonly Command[], typed: readonly string[]): readonly string[] {
  const last = typed.at(-1) ?? ''
  const before = typed.slice(0, -1)
  const words = before.filter((word) => !word.startsWith('-'))
  const command = findCommand(commands, words)
  const flags: Flags = { ...GLOBAL_FLAGS, ...command?.flags }
  const flag = before.at(-1)
  const values = flag?.startsWith('--') ? valuesOf(flags[flag.slice(2)]?.placeholder ?? null) : []
  const isWord = before.every((word) => !word.startsWith('-'))
  const known =
    values.length > 0
      ? values
      : last.startsWith('-')
        ? Object.keys(flags).map((name) => `--${name}`)
        : isWord
          ? nextWords(commands, before)
          : []
  return known.filter((word) => word.startsWith(last))
}
