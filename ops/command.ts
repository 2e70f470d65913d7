/** Shared parts of the commands `npm run cb -- ops market …`: flags, context and times. */
import { MARKET_MODES } from '../domain/market/parameters.ts'
import type { Millis } from '../domain/units.ts'
import { type Arguments, type Flags, required, text, toggle } from '../service/command-line.ts'
import { timeOfMillis } from '../tasks/print.ts'
import type { ChainState } from './chain-terms.ts'
import type { Connection, OpsMarket } from './connect.ts'
import { OpsError } from './error.ts'

export const MARKET = {
  market: required(text('<symbol>', 'symbol of the market')),
  stack: text(
    '<file>',
    'stack.json of a running stack; without it the environment: RPC_URL, DATABASE_URL, OPS_KEY',
  ),
} as const
export const SEND = { send: toggle('send it; without it the command only prints') } as const
export const FROM = { from: text('<time>', 'when it takes effect, such as 2035-01-01T00:00:00Z') } as const

/** Time between the announcement of parameters or of a close and the earliest moment they apply. */
export const NOTICE_MS = 86_400_000
export const GRACE_MS = 5_001
/** For the time until the transaction is mined. */
const MARGIN_MS = 60_000

export interface Context extends OpsMarket {
  readonly connection: Connection
  readonly chain: ChainState
}

export interface Command<Declared extends Flags> {
  readonly help: string
  readonly flags: Declared
  readonly run: (context: Context, flags: Arguments<Declared>) => Promise<void>
}

export const command = <Declared extends Flags>(each: Command<Declared>): Command<Declared> => each

export function timeOf(flag: string, given: string): Millis {
  const at = /^\d{4}-\d\d-\d\dT.*Z$/.test(given) ? Date.parse(given) : Number.NaN
  if (Number.isNaN(at))
    throw new OpsError(`--${flag} must be a time such as 2035-01-01T00:00:00Z; received ${given}`)
  return at as Millis
}

/** `from`, or the earliest time that the contract accepts and a margin. */
export function effectiveFrom({ chain }: Context, given: string | undefined, notice: number): Millis {
  const earliest = chain.blockTime + notice
  if (given === undefined) return (earliest + MARGIN_MS) as Millis
  const at = timeOf('from', given)
  if (at < earliest)
    throw new OpsError(`--from must be ${new Date(earliest).toISOString()} or later; received ${given}`)
  return at
}

/** An argument of the contract, and what it means. */
export const instant = (at: Millis): string => `${at} (${timeOfMillis(at)})`

export const modeNumber = (mode: (typeof MARKET_MODES)[number]): number => MARKET_MODES.indexOf(mode)
