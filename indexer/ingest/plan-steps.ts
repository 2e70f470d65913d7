/**
 * Divides the facts of a block into steps, each of which one transaction applies, so that a market's facts wait for no other market's.
 * Pure: which facts may change places follows from their shards, their accounts and what they read.
 */

import { accountsOf } from '../../domain/chain/fact-accounts.ts'
import type { Address } from '../../domain/units.ts'
import { type BlockFact, shardOf } from './fact-locks.ts'

/** Facts in the order of the chain, and the shards to whose journals they append. */
export interface Step {
  /** Steps of one stage change different rows or commute. A stage begins when all before it are applied. */
  readonly stage: number
  readonly shards: readonly string[]
  readonly facts: readonly BlockFact[]
}

/** Most stages of a block: beyond them, its facts are one step, so that alternating facts cannot make a block cost a transaction each. */
export const MOST_STAGES = 6

/**
 * Facts that depend on what other shards have, or cancel orders in them: a withdrawal request cancels what the balance after the facts before it does
 * not cover, a key cancels orders of every market, and a relayed operation is judged by the state that the facts before it left.
 */
export function isBarrier({ fact }: BlockFact): boolean {
  switch (fact.kind) {
    case 'ledger_moved':
      return fact.cause === 'withdrawal_request'
    case 'session_key_updated':
    case 'forward_request_executed':
    case 'bank_pause_changed':
      return true
    default:
      return false
  }
}

/** Accounts whose pending withdrawal the block itself changes. */
const changesPending = ({ fact }: BlockFact): Address[] =>
  fact.kind === 'ledger_moved' && fact.pendingDelta !== 0n ? [fact.account] : []

/**
 * `withPending`: the accounts with a pending withdrawal before the block. It pays the share of a debit that the free balance does not cover, so the
 * order of such an account's facts matters in all shards; of any other account, changes of the balance commute.
 */
export function planSteps(facts: readonly BlockFact[], withPending: Iterable<Address>): Step[] {
  const ordered = new Set([...withPending, ...facts.flatMap(changesPending)])
  const effective = facts.filter((logged) => shardOf(logged) !== null)
  const whole = stepOf(0, effective)
  const stages = stagesOf(effective)
  if (whole.shards.length <= 1 || stages.length > MOST_STAGES) return [whole]
  return stages.flatMap((own, stage) =>
    own.some(isBarrier) ? [stepOf(stage, own)] : dependent(own, ordered).map((some) => stepOf(stage, some)),
  )
}

const stepOf = (stage: number, facts: readonly BlockFact[]): Step => ({
  stage,
  shards: [...new Set(facts.flatMap((logged) => shardOf(logged) ?? []))].sort(),
  facts,
})

/** Maximal runs of barriers, and of facts between them. */
function stagesOf(facts: readonly BlockFact[]): BlockFact[][] {
  const stages: BlockFact[][] = []
  for (const [at, logged] of facts.entries()) {
    const before = facts[at - 1]
    if (before !== undefined && isBarrier(before) === isBarrier(logged)) stages.at(-1)?.push(logged)
    else stages.push([logged])
  }
  return stages
}

/** The facts that share a shard or an ordered account, directly or by other facts, are one group, in the order of the chain. */
function dependent(facts: readonly BlockFact[], ordered: ReadonlySet<Address>): BlockFact[][] {
  let groups: { readonly keys: Set<string>; readonly facts: BlockFact[] }[] = []
  for (const logged of facts) {
    const keys = [
      shardOf(logged) as string,
      ...accountsOf(logged.fact).filter((account) => ordered.has(account)),
    ]
    const joined = groups.filter((group) => keys.some((key) => group.keys.has(key)))
    const merged = {
      keys: new Set([...keys, ...joined.flatMap((group) => [...group.keys])]),
      facts: [...joined.flatMap((group) => group.facts), logged],
    }
    groups = [...groups.filter((group) => !joined.includes(group)), merged]
  }
  return groups.map((group) => group.facts.sort((a, b) => a.log.logIndex - b.log.logIndex))
}
