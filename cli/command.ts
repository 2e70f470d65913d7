/** What a command is. The table of commands decides help, completions, the reference in docs/ and the tools of `clearbatch mcp`. */
import type { Arguments, Flags } from '../service/command-line.ts'
import type { CommandKind } from './command-kind.ts'
import type { Context } from './context.ts'
import type { Result } from './print.ts'

export type Run<Declared extends Flags> = (
  context: Context,
  args: Arguments<Declared>,
) => Promise<Result | undefined>

export interface Command<Declared extends Flags = Flags> {
  /** Words, such as `order place`. */
  readonly name: string
  readonly help: string
  /** Arguments without a flag; a word in brackets is optional, and one that ends with `...` may repeat. */
  readonly positionals: string
  readonly flags: Declared
  readonly kind: CommandKind
  /** Of the reference: a complete line. */
  readonly example: string
  /** Also offered by `clearbatch mcp`. */
  readonly mcp: boolean
  /** Loads what runs it, so that help does not load every command. */
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
