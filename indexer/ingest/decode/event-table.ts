/** One decoder per event of a contract, and the readers of event arguments that the tables of all contracts share. */
import type { EventFragment, Interface, Result } from 'ethers'
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
    /** Decodes the log itself. */
    | { readonly raw: (context: Context, log: LogData) => Fact }
}

const known = new WeakMap<Interface, ReadonlyMap<string, EventFragment>>()

/** The contract's events by topic. Ethers hashes the signatures of all events to find one. */
function eventsOf(contract: Interface): ReadonlyMap<string, EventFragment> {
  const found = known.get(contract)
  if (found !== undefined) return found
  const events = new Map<string, EventFragment>()
  contract.forEachEvent((event) => events.set(event.topicHash, event))
  known.set(contract, events)
  return events
}

/** Throws for a log that the contract's ABI does not describe. */
export function decodeEvent<Contract extends Interface, Fact, Context>(
  contract: Contract,
  table: EventTable<Contract, Fact, Context>,
  log: LogData,
  context: Context,
): Fact | IgnoredEvent {
  const event = eventsOf(contract).get(log.topics[0]?.toLowerCase() ?? '')
  if (event === undefined) throw new Error(`the contract declares no event with topic ${log.topics[0]}`)
  const decoder = table[event.name as EventName<Contract>]
  if (typeof decoder === 'function')
    return decoder(contract.decodeEventLog(event, log.data, log.topics), context, log)
  return decoder === IGNORED ? { kind: IGNORED, event: event.name } : decoder.raw(context, log)
}

export const addressOf = (value: unknown): Address => String(value).toLowerCase() as Address
export const stepsOf = (value: bigint): Steps => Number(value) as Steps
export const millisOf = (value: bigint): Millis => Number(value) as Millis
