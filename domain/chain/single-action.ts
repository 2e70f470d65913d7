/** Facts of actions outside batches: the emitting action, the content of its receipt, and its journal row. */
import type { SingleKind } from '../actions/action.ts'
import type { FundingUpdatedRow, InheritanceFailed, MarketEndedRow } from '../journal/action-rows.ts'
import type { MarketMode } from '../market/market.ts'
import { NO_EVENTS, type ReceiptEvents } from '../settlement/receipt.ts'
import type { MinedAt } from '../settlement/settle-part.ts'
import type { Millis } from '../units.ts'
import type { SingleFact } from './fact-accounts.ts'
import type { ChainFact, PositionInheritedFact, PositionsDeleveragedFact } from './facts.ts'

export type ActionFact = SingleFact | PositionInheritedFact | PositionsDeleveragedFact

/** Kind of the emitting action; null for a freeze, which any account may send. */
export function actionKindOf(fact: ActionFact): SingleKind | null {
  switch (fact.kind) {
    case 'funding_updated':
      return 'update_funding'
    case 'position_inherited':
    case 'inheritance_failed':
      return 'inherit_position'
    case 'positions_deleveraged':
      return 'deleverage'
    case 'market_ended':
      return fact.event.how === 'finalized' ? 'finalize_market' : null
  }
}

export function eventsOf(fact: ActionFact): ReceiptEvents {
  switch (fact.kind) {
    case 'funding_updated':
      return { ...NO_EVENTS, fundingUpdated: [fact.event] }
    case 'position_inherited':
      return { ...NO_EVENTS, inherited: [fact.event] }
    case 'inheritance_failed':
      return { ...NO_EVENTS, inheritanceFailed: [fact.event] }
    case 'positions_deleveraged':
      return { ...NO_EVENTS, deleveraged: [fact.event] }
    case 'market_ended':
      return { ...NO_EVENTS, ended: [fact.event] }
  }
}

/** Number and time of the action that emitted the event; null if no action did. */
export function minedActionOf(fact: ChainFact): { readonly actionId: number; readonly asOf: Millis } | null {
  switch (fact.kind) {
    case 'part_mined':
      return fact.settled
    case 'funding_updated':
      return { actionId: fact.event.actionId, asOf: fact.event.validFrom }
    case 'position_inherited':
    case 'inheritance_failed':
    case 'positions_deleveraged':
    case 'market_ended':
      return fact.event
    default:
      return null
  }
}

/** `modeBefore`: mode of the market before the fact. */
export function singleRow(
  fact: SingleFact,
  mined: MinedAt,
  modeBefore: MarketMode,
): FundingUpdatedRow | InheritanceFailed | MarketEndedRow {
  const common = { rollback: false, action_id: fact.event.actionId, ...mined }
  switch (fact.kind) {
    case 'funding_updated':
      return {
        kind: 'funding_updated',
        ...common,
        as_of: fact.event.validFrom,
        rate: fact.event.rate.toString(),
        valid_until: fact.event.validUntil,
        funding_index: fact.event.fundingIndex.toString(),
        oracle_price: fact.event.oraclePrice.toString(),
        oracle_at: fact.event.observedAt,
      }
    case 'inheritance_failed':
      return {
        kind: 'inheritance_failed',
        ...common,
        account: fact.event.account,
        reason: fact.event.reason,
        needed: fact.event.needed.toString(),
        available: fact.event.available.toString(),
        as_of: fact.event.asOf,
        funding_index: fact.event.fundingIndex.toString(),
      }
    case 'market_ended':
      return {
        kind: 'market_ended',
        ...common,
        how: fact.event.how,
        price: fact.event.price.toString(),
        price_at: fact.event.observedAt,
        funding_index: fact.event.fundingIndex.toString(),
        as_of: fact.event.asOf,
        pool: fact.event.pool.toString(),
        mode_before: modeBefore,
      }
  }
}
