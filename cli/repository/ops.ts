/** `ops …`: an operator's commands on a running exchange. Each prints what it would do; `--send` does it. */
import { ANNOUNCE_COMMANDS, runAnnounceCommand } from '../../ops/announce.ts'
import { BACKUP_COMMANDS, runBackupCommand } from '../../ops/backup.ts'
import { CALENDAR_COMMANDS, runCalendarCommand } from '../../ops/calendar.ts'
import { COMMANDS as MARKET_COMMANDS, runMarketCommand } from '../../ops/market.ts'
import { ORACLE_COMMANDS, runOracleCommand } from '../../ops/oracle.ts'
import { RELAYER_COMMANDS, runRelayerCommand } from '../../ops/relayer.ts'
import type { Flags } from '../../service/command-line.ts'
import { type Command, command } from '../command.ts'
import type { Context } from '../context.ts'

interface Topic {
  readonly commands: Readonly<Record<string, { readonly help: string; readonly flags: Flags }>>
  readonly run: (name: never, flags: never, env: Context['env']) => Promise<void>
}

const TOPICS: Readonly<Record<string, Topic>> = {
  market: { commands: MARKET_COMMANDS, run: runMarketCommand },
  calendar: { commands: CALENDAR_COMMANDS, run: runCalendarCommand },
  announce: { commands: ANNOUNCE_COMMANDS, run: runAnnounceCommand },
  backup: { commands: BACKUP_COMMANDS, run: runBackupCommand },
  relayer: { commands: RELAYER_COMMANDS, run: runRelayerCommand },
  oracle: { commands: ORACLE_COMMANDS, run: runOracleCommand },
}

/** `--stack` is a flag of every command; the operator's commands act on the environment without it. */
function withoutStack({ stack: _, ...flags }: Flags): Flags {
  return flags
}

const runOf =
  ({ run }: Topic, name: string) =>
  async ({ flags, env }: Context, args: object): Promise<undefined> => {
    await run(name as never, { ...args, stack: flags.stack } as never, env)
    return undefined
  }

export const OPS_COMMANDS: readonly Command[] = Object.entries(TOPICS).flatMap(([topic, found]) =>
  Object.entries(found.commands).map(([name, { help, flags }]) =>
    command(`ops ${topic} ${name}`, {
      help: `${help.charAt(0).toUpperCase()}${help.slice(1)}`,
      flags: withoutStack(flags),
      kind: 'tool',
      example: `npm run cb -- ops ${topic} ${name}${'market' in flags ? ' --market BTC-PERP' : ''} --stack .clearbatch/stack.json`,
      load: async () => runOf(found, name),
    }),
  ),
)
