/**
 * Defines a command. The command table generates help, completions, the reference in docs/ and the tools of `clearbatch
 * mcp`.
 */
import type { Arguments, Flags } from '../service/command-line.ts'
import type { CommandKind } from './command-kind.ts'
import type { Context } from './context.ts'
import type { Result } from './print.ts'

export type Run<Declared extends Flags> = (
  context: Context,
  args: Arguments<Declared>,
) => Promise<Result | undefined>

export interface Command<Declared extends Flags = Flags> {
  /** The words of the command, such as `order place`. */
  readonly name: string
  readonly help: string
  /** Positional arguments: brackets mark an optional word, a final `...` a repeatable one. */
  readonly positionals: string
  readonly flags: Declared
  readonly kind: CommandKind
  /** A complete command line for `--help`. */
  readonly example: string
  /** Also offered by `clearbatch mcp`. */
  readonly mcp: boolean
  /** Imports the implementation on demand, so that help does not load every command. */
  readonly load: () => Promise<Run<Declared>>
}

interface Definition<Declared extends Flags> {
  readonly help: string
  readonly positionals?: string
  readonly flags?: Declared
  readonly kind: CommandKind
  readonly example: string
  readonly mcp?: boolean
  readonly load: () => Promise<Run<Declared>>
}

export const command = <const Declared extends Flags>(
  name: string,
  definition: Definition<Declared>,
): Command =>
  ({
    name,
    positionals: '',
    flags: {},
    mcp: false,
    ...definition,
  }) as unknown as Command
