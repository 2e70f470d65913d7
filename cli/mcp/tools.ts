/** Offers the table's commands as tools: names, argument schemas, and the command line of a call. */
import type { Command } from '../command.ts'
import { CommandError, EXIT } from '../failure.ts'
import type { TradeGuard } from './guard.ts'

export interface Tool {
  readonly name: string
  readonly description: string
  readonly inputSchema: {
    readonly type: 'object'
    readonly properties: Readonly<Record<string, object>>
    readonly required: readonly string[]
    readonly additionalProperties: false
  }
  readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean }
  readonly command: Command
}

/** Flags that a tool does not offer, because it never prompts, always ends, and names no file. */
const HIDDEN = ['yes', 'follow', 'csv', 'state', 'output', 'svg']

interface Positional {
  readonly name: string
  readonly isRequired: boolean
  readonly isList: boolean
}

/** Parses for example `<market> [batch]` or `[order...]`. */
const positionalsOf = ({ positionals }: Command): readonly Positional[] =>
  positionals
    .split(' ')
    .filter(Boolean)
    .map((word) => ({
      name: (word.replace(/[<>[\].]/g, '').split('|')[0] as string).trim(),
      isRequired: word.startsWith('<'),
      isList: word.includes('...'),
    }))

const wordsOf = (placeholder: string): readonly string[] | null =>
  /^[\w./-]+(\|[\w./-]+)+$/.test(placeholder) ? placeholder.split('|') : null

const isRequired = (flag: Command['flags'][string]): boolean => {
  try {
    flag.read(undefined)
    return false
  } catch {
    return true
  }
}

function schemaOf(command: Command): Tool['inputSchema'] {
  const flags = Object.entries(command.flags).filter(([name]) => !HIDDEN.includes(name))
  const positionals = positionalsOf(command)
  const properties = Object.fromEntries([
    ...positionals.map(({ name, isList }) => [
      name,
      isList ? { type: 'array', items: { type: 'string' } } : { type: 'string', description: `the ${name}` },
    ]),
    ...flags.map(([name, { placeholder, help }]) => {
      const words = placeholder === null ? null : wordsOf(placeholder)
      const type = placeholder === null ? 'boolean' : 'string'
      return [name, { type, description: help, ...(words === null ? {} : { enum: words }) }]
    }),
  ])
  const required = [
    ...positionals.filter((each) => each.isRequired).map(({ name }) => name),
    ...flags.filter(([, flag]) => isRequired(flag)).map(([name]) => name),
  ]
  return { type: 'object', properties, required, additionalProperties: false }
}

/** Tools of the commands; only read-only commands if `guard` is null. */
export const toolsOf = (commands: readonly Command[], guard: TradeGuard | null): readonly Tool[] =>
  commands
    .filter(({ mcp, kind }) => mcp && (kind === 'read' || guard !== null))
    .map((command) => ({
      name: command.name.replaceAll(' ', '_'),
      description: command.help,
      inputSchema: schemaOf(command),
      annotations: { readOnlyHint: command.kind === 'read', destructiveHint: command.kind !== 'read' },
      command,
    }))

/** The command line of a call. Throws if the schema lacks an argument. */
export function commandLineOf(
  { command, inputSchema }: Tool,
  given: Readonly<Record<string, unknown>>,
): readonly string[] {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(inputSchema.properties, name))
  if (unknown !== undefined)
    throw new CommandError(
      `unknown argument ${unknown}: expected ${Object.keys(inputSchema.properties).join(', ')}`,
      EXIT.usage,
    )
  const positionals = positionalsOf(command)
  const flags = Object.entries(given).filter(([name]) => !positionals.some((each) => each.name === name))
  const words = positionals.flatMap(({ name }) => [given[name] ?? []].flat().map(String))
  const options = flags.flatMap(([name, value]) => {
    if (value === undefined || value === null || value === false) return []
    return value === true ? [`--${name}`] : [`--${name}=${String(value)}`]
  })
  return [...command.name.split(' '), ...options, '--', ...words]
}
