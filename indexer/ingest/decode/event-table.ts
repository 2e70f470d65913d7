/** One decoder per event of a contract, and the readers of event arguments that the tables of all contracts share. */
import type { Interface, Result } from 'ethers'
import type { IgnoredEvent } from '../../../domain/chain/facts.ts'
import type { Address, Millis, Steps } from '../../../domain/units.ts'
import type { ChainLog } from '../../ports.ts'

export type LogData = Pick<ChainLog, 'topics' | 'data'>

/** The event changes nothing that this database stores. */
export const IGNORED = 'ignored'

type EventName<Contract extends Interface> = Parameters<Contract['getEvent']>[0]

/** The compiler rejects a table that misses an event of the contract's ABI, or has one that the ABI does not declare. */
export type EventTable<Contract extends Interface, Fact, Context> = {
  readonly [Event in EventName<Contract>]:
    | typeof IGNORED
    | ((args: Result, context: Context, log: LogData) => Fact)
}

/** Throws for a log that the contract's ABI does not describe. */
export function decodeEvent<Contract extends Interface, Fact, Context>(
  contract: Contract,
  table: EventTable<Contract, Fact, Context>,
  log: LogData,
  context: Context,
): Fact | IgnoredEvent {
  const event = contract.parseLog(log)
  if (event === null) throw new Error(`the contract declares no event with topic ${log.topics[0]}`)
  const decoder = table[event.name as EventName<Contract>]
  return decoder === IGNORED ? { kind: IGNORED, event: event.name } : decoder(event.args, context, log)
}

export const addressOf = (value: unknown): Address => String(value).toLowerCase() as Address
export const stepsOf = (value: bigint): Steps => Number(value) as Steps
export const millisOf = (value: bigint): Millis => Number(value) as Millis
