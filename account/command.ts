/** What a command of `npm run account` is. */
import type { Arguments, Flags } from '../service/command-line.ts'
import type { Session } from './connect.ts'
import type { Result } from './print.ts'

export interface Command<Declared extends Flags = Flags> {
  readonly help: string
  /** For the usage; a word in brackets is optional. */
  readonly positionals: string
  readonly flags: Declared
  readonly run: (
    session: Session,
    positionals: readonly string[],
    flags: Arguments<Declared>,
  ) => Promise<Result>
}

export const command = <const Declared extends Flags>(
  help: string,
  positionals: string,
  flags: Declared,
  run: Command<Declared>['run'],
): Command => ({ help, positionals, flags, run }) as unknown as Command
