/**
 * Applies the facts of actions that are not parts of batches: the action is mined, its events are compared with what was sent, and funding,
 * mode and journal follow. Positions are moved by `move-positions.ts`. The caller holds the lock of the market's shard.
 */
import { mineSingle, noteFailure, rollBackSingle, toSingleAction } from '../../db/actions.ts'
import type { Tx } from '../../db/client.ts'
import { deleteFunding, type MinedFunding } from '../../db/funding.ts'
import { setEnd } from '../../db/market-endings.ts'
import { setMode } from '../../db/markets.ts'
import { expectationOf } from '../../domain/actions/action-rules.ts'
import type { SingleFact } from '../../domain/chain/fact-accounts.ts'
import type { ChainFact } from '../../domain/chain/facts.ts'
import {
  type ActionFact,
  actionKindOf,
  endOf,
  eventsOf,
  singleRow,
} from '../../domain/chain/single-action.ts'
import type {
  FundingUpdatedRow,
  InheritanceFailed,
  MarketEndedRow,
} from '../../domain/journal/action-rows.ts'
import { type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import { isWithoutEffect, type Mismatch } from '../../domain/settlement/receipt.ts'
import { reconcile } from '../../domain/settlement/reconcile.ts'
import type { MinedAt } from '../../domain/settlement/settle-part.ts'
import type { HourlyFunding } from '../../domain/units.ts'
import type { LockedShards } from './locked-shards.ts'

/**
 * Marks the fact's action as mined. Returns the first mismatch of its events, null if there is none; undefined if this database has not
 * sent the action. An action that only had no effect is noted with it, and is no mismatch. `movesPositions`: see `ReceiptEvents`.
 */
export async function mineAction(
  { tx, shards }: { readonly tx: Tx; readonly shards: LockedShards },
  fact: ActionFact,
  movesPositions: boolean,
): Promise<Mismatch | null | undefined> {
  const kind = actionKindOf(fact)
  const { actionId } = fact.event
  const row = kind === null ? undefined : await mineSingle(tx, fact.spec.marketId, kind, actionId)
  if (row === undefined) return undefined
  const verdict = reconcile(
    { ...eventsOf(fact), movesPositions },
    expectationOf(toSingleAction(row), actionId),
  )
  if (verdict.ok) return null
  if (!isWithoutEffect(verdict.refusal)) return verdict.refusal
  const { reason } = verdict.refusal
  await noteFailure(tx, row, reason)
  shards.append(marketShard(fact.spec.marketId), { kind: 'action_failed', queue_no: row.queue_no, reason })
  return null
}

/** Applies the fact and returns its journal row. */
export async function applySingle(
  tx: Tx,
  fact: SingleFact,
  mined: MinedAt,
): Promise<FundingUpdatedRow | InheritanceFailed | MarketEndedRow> {
  const { marketId } = fact.spec
  if (fact.kind !== 'market_ended') return singleRow(fact, mined, 'open')
  await setEnd(tx, marketId, endOf(fact.event, mined))
  return singleRow(fact, mined, await setMode(tx, marketId, 'settled'))
}

/** The funding that the chain has as of the fact's action; null if the fact is of no action, or if its market has no funding. */
export function minedFunding(fact: ChainFact): MinedFunding | null {
  if (!('spec' in fact) || fact.spec?.kind !== 'perpetual') return null
  switch (fact.kind) {
    case 'part_mined': {
      const { actionId, asOf, fundingIndex } = fact.settled
      return { actionId, asOf, index: fundingIndex, sets: null }
    }
    case 'funding_updated': {
      const { actionId, validFrom, fundingIndex } = fact.event
      return { actionId, asOf: validFrom, index: fundingIndex, sets: fact.event }
    }
    case 'position_inherited':
    case 'inheritance_failed':
    case 'positions_deleveraged': {
      const { actionId, asOf, fundingIndex } = fact.event
      return { actionId, asOf, index: fundingIndex, sets: null }
    }
    case 'market_ended': {
      const { actionId, asOf, fundingIndex } = fact.event
      // It is the market's last action: the index stays, although the rate may be valid for longer.
      const sets = { rate: 0n as HourlyFunding, validUntil: asOf }
      return { actionId, asOf, index: fundingIndex, sets }
    }
    default:
      return null
  }
}

/** Undoes what the row's action did to funding, to the queue and to the mode. Its row that states the rollback; null if another module writes it. */
export async function rollBackAction(tx: Tx, marketId: number, row: JournalRow): Promise<JournalRow | null> {
  if (!('rollback' in row && 'action_id' in row) || row.action_id === undefined) return null
  await deleteFunding(tx, marketId, row.action_id)
  if (row.kind === 'part_settled') return null
  await rollBackSingle(tx, marketId, row.action_id)
  if (row.kind === 'positions_moved') return null
  if (row.kind === 'market_ended') {
    await setMode(tx, marketId, row.mode_before)
    await setEnd(tx, marketId, null)
  }
  return { ...row, rollback: true }
}
