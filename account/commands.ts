/** All commands of `npm run account`, by name. */
import { BANK_COMMANDS } from './bank.ts'
import type { Command } from './command.ts'
import { HISTORY_COMMANDS } from './history.ts'
import { KEY_COMMANDS } from './keys.ts'
import { POSITION_COMMANDS } from './positions.ts'
import { SESSION_KEY_COMMANDS } from './session-keys.ts'

export const COMMANDS: Readonly<Record<string, Command>> = {
  ...KEY_COMMANDS,
  ...SESSION_KEY_COMMANDS,
  ...BANK_COMMANDS,
  ...POSITION_COMMANDS,
  ...HISTORY_COMMANDS,
}
