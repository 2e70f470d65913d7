/**
 * Arguments of the command-line tools.
 * Each tool declares its flags. An invalid argument ends the tool with its usage and exit code 2.
 */
import { parseArgs } from 'node:util'

/** Ends a tool with the usage text in its message. `exitCode` is 0 if the user requested the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly exitCode: 0 | 2

  constructor(message: string, exitCode: 0 | 2 = 2) {
    super(message)
    this.exitCode = exitCode
  }
}

/**
 * `Flag.read` throws it. The message states what the flag accepts and completes a sentence, for example "a
 * whole number".
 */
class Invalid extends Error {}

export interface Flag<Value> {
  /** Placeholder of the value in the usage; null if the flag takes no value. */
  readonly placeholder: string | null
  readonly help: string
  /** `text` is undefined if the flag is absent. */
  readonly read: (text: string | undefined) => Value
}

export type Flags = Readonly<Record<string, Flag<unknown>>>

export interface CommandLine<Declared extends Flags> {
  /** Command as typed, for example `npm run cb -- replay --`. */
  readonly command: string
  readonly flags: Declared
  /** Positional arguments in the usage. If absent, the tool takes none. */
  readonly positionals?: string
}

export type Arguments<Declared extends Flags> = {
  readonly [Name in keyof Declared]: Declared[Name] extends Flag<infer Value> ? Value : never
} & { readonly positionals: readonly string[] }

/** A flag that accepts a value if `convert` returns a result for it. */
const flag = <Value>(
  placeholder: string,
  help: string,
  valid: string,
  convert: (text: string) => Value | undefined,
): Flag<Value | undefined> => ({
  placeholder,
  help,
  read(text) {
    const value = text === undefined ? undefined : convert(text)
    if (text !== undefined && value === undefined) throw new Invalid(`must be ${valid}, not ${text}`)
    return value
  },
})

export const text = (placeholder: string, help: string): Flag<string | undefined> =>
  flag(placeholder, help, 'a text of at least one character', (value) => value || undefined)

/** A flag without a value. */
export const toggle = (help: string): Flag<boolean> => ({
  placeholder: null,
  help,
  read: (value) => value !== undefined,
})

export const oneOf = <const Word extends string>(
  words: readonly Word[],
  help: string,
): Flag<Word | undefined> =>
  flag(words.join('|'), help, `one of ${words.join(', ')}`, (value) => words.find((word) => word === value))

/** A number in decimal digits, without exponent or other notations of JavaScript. */
const DECIMAL = /^\d+(\.\d+)?$/

/** `kind` names the number in error messages. */
export function wholeNumber(
  help: string,
  { least = 0, most = Number.MAX_SAFE_INTEGER, kind = 'a whole number' } = {},
): Flag<number | undefined> {
  const bounds = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
  return flag('<n>', help, `${kind} ${bounds}`, (value) => {
    const number = Number(value)
    return /^\d+$/.test(value) && number >= least && number <= most ? number : undefined
  })
}

export const positiveNumber = (help: string): Flag<number | undefined> =>
  flag('<x>', help, 'a positive number', (value) =>
    DECIMAL.test(value) && Number(value) > 0 ? Number(value) : undefined,
  )

/** A decimal number as text, so that no digit is lost. */
export const decimal = (help: string): Flag<string | undefined> =>
  flag('<x>', help, 'a decimal number', (value) => (DECIMAL.test(value) ? value : undefined))

export const required = <Value>({ read, ...rest }: Flag<Value | undefined>): Flag<Value> => ({
  ...rest,
  read(value) {
    if (value === undefined) throw new Invalid('is required')
    return read(value) as Value
  },
})

export const withDefault = <Value>(
  { read, help, ...rest }: Flag<Value | undefined>,
  fallback: Value,
): Flag<Value> => ({
  ...rest,
  help: `${help} (default ${fallback})`,
  read: (value) => read(value) ?? fallback,
})

/** Throws a UsageError for an unknown, missing or invalid argument, and for `--help`. */
export function parseArguments<const Declared extends Flags>(
  line: CommandLine<Declared>,
  args: readonly string[],
): Arguments<Declared> {
  if (args.includes('--help')) throw new UsageError(usageOf(line), 0)
  const { values, positionals } = rawArguments(line, args)
  const read = Object.entries(line.flags).map(([name, { placeholder, read }]) => {
    const value = values[name]
    try {
      return [name, read(placeholder === null ? (value === true ? '' : undefined) : (value as string))]
    } catch (error) {
      if (!(error instanceof Invalid)) throw error
      return rejectArguments(line, `--${name} ${error.message}`)
    }
  })
  return { ...Object.fromEntries(read), positionals } as unknown as Arguments<Declared>
}

function rawArguments(line: CommandLine<Flags>, args: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(line.flags).map(([name, { placeholder }]) => {
      return [name, { type: placeholder === null ? 'boolean' : 'string' } as const]
    }),
  )
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    const [first] = positionals
    if (first === undefined || line.positionals !== undefined) return { values, positionals }
    return rejectArguments(line, `unexpected argument ${first}`)
  } catch (error) {
    if (error instanceof UsageError) throw error
    return rejectArguments(line, (error as Error).message)
  }
}

/** Rejects arguments that the flags cannot check: positionals, and flags that depend on each other. */
export function rejectArguments(line: CommandLine<Flags>, problem: string): never {
  throw new UsageError(`${problem}\n\n${usageOf(line)}`)
}

function usageOf({ command, flags, positionals }: CommandLine<Flags>): string {
  const rows = Object.entries(flags).map(([name, { placeholder, help }]) => {
    return [placeholder === null ? `--${name}` : `--${name} ${placeholder}`, help] as const
  })
  const width = Math.max(0, ...rows.map(([left]) => left.length))
  const options = rows.length > 0 ? ' [options]' : ''
  return [
    `usage: ${command}${positionals === undefined ? '' : ` ${positionals}`}${options}`,
    ...rows.map(([left, help]) => `  ${left.padEnd(width)}  ${help}`),
  ].join('\n')
}

/** Arguments of this process. Invalid arguments end the process. */
export const argumentsOf = <const Declared extends Flags>(line: CommandLine<Declared>): Arguments<Declared> =>
  orExit(() => parseArguments(line, process.argv.slice(2)))

/** Ends the process with the usage if `read` throws a UsageError. */
export function orExit<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    if (error.exitCode === 0) console.log(error.message)
    else console.error(error.message)
    process.exit(error.exitCode)
  }
}
