/**
 * Position changes outside batches: inheritance, deleveraging, adjustments, and the deficits and claims of a wind-down.
 * A fact and the prior positions yield the new positions and the journal row.
 */
import { InvariantError } from '../invariant.ts'
import type { PositionsMoved } from '../journal/journal-row.ts'
import { applyAdjusted } from '../positions/adjustment-replay.ts'
import { FLAT, type Position } from '../positions/position.ts'
import { emptied } from '../risk/liquidation.ts'
import { applyDeleveraged, applyInherited } from '../risk/risk-replay.ts'
import { type MinedAt, positionChange } from '../settlement/settle-part.ts'
import { type SettlingOrder, settledOrder } from '../settlement/settling-order.ts'
import type { Address } from '../units.ts'
import { closedLegs, type PositionMoveFact } from './fact-accounts.ts'

export type Positions = ReadonlyMap<Address, Position>

/** Changes of free balances, from the event. */
function freeDeltas(fact: PositionMoveFact): { account: Address; delta: bigint }[] {
  switch (fact.kind) {
    case 'position_adjusted':
      return [{ account: fact.event.account, delta: -fact.event.amount }]
    case 'position_inherited':
      return [{ account: fact.event.backstop, delta: fact.event.freeDelta }]
    case 'positions_deleveraged':
      return closedLegs(fact).map(({ counterparty, payout }) => ({ account: counterparty, delta: payout }))
    case 'claimed':
      return [{ account: fact.event.account, delta: fact.event.paid }]
    case 'deficit_covered':
      return [{ account: fact.payer, delta: -fact.amount }]
    default:
      return []
  }
}

/** New positions by the rules of `domain/`. Null if the rules do not explain the event. */
export function movedPositions(fact: PositionMoveFact, before: Positions): Positions | null {
  const empty = (account: Address): Positions => new Map([[account, emptied(before.get(account) ?? FLAT)]])
  try {
    switch (fact.kind) {
      case 'position_adjusted':
        return applyAdjusted(before, fact.event).positions
      case 'position_inherited':
        return applyInherited(before, fact.event).positions
      case 'positions_deleveraged':
        return applyDeleveraged(before, fact.event).positions
      case 'insolvency_reported':
        return empty(fact.event.account)
      case 'claimed':
        return fact.event.value === 0n ? new Map() : empty(fact.event.account)
      case 'deficit_covered':
        return new Map()
    }
  } catch (error) {
    if (error instanceof InvariantError) return null
    throw error
  }
}

/** Evidence of the move's decision; see `PositionsMoved`. */
export function evidenceOf(
  fact: PositionMoveFact,
): Pick<PositionsMoved, 'oracle_price' | 'oracle_at' | 'as_of' | 'adjustment'> {
  if (fact.kind === 'position_adjusted') {
    const { signer, nonce, asOf } = fact.event
    return { adjustment: { signer, nonce: nonce.toString(), as_of: asOf } }
  }
  if (fact.kind !== 'position_inherited' && fact.kind !== 'positions_deleveraged') return {}
  const { oraclePrice, observedAt, asOf } = fact.event
  return { oracle_price: oraclePrice.toString(), oracle_at: observedAt, as_of: asOf }
}

const causeOf = (fact: PositionMoveFact): PositionsMoved['cause'] => {
  if (fact.kind !== 'position_adjusted') return CAUSES[fact.kind]
  return fact.event.leverage === null ? 'margin_adjusted' : 'leverage_adjusted'
}

const CAUSES: Readonly<
  Record<Exclude<PositionMoveFact['kind'], 'position_adjusted'>, PositionsMoved['cause']>
> = {
  position_inherited: 'inherited',
  positions_deleveraged: 'deleveraged',
  insolvency_reported: 'insolvency_reported',
  claimed: 'claimed',
  deficit_covered: 'deficit_covered',
}

export interface Move {
  readonly before: Positions
  readonly after: Positions
  readonly idOf: (account: Address) => number
  /** Reduce-only orders that the move ends or takes out of the book. */
  readonly closed: readonly SettlingOrder[]
  /** Funding index after the market's last mined action, for facts that state none. */
  readonly lastIndex: bigint
  readonly mined: MinedAt
}

export function moveRow(
  fact: PositionMoveFact,
  { before, after, idOf, closed, lastIndex, mined }: Move,
): PositionsMoved {
  const index = 'event' in fact && 'fundingIndex' in fact.event ? fact.event.fundingIndex : lastIndex
  return {
    kind: 'positions_moved',
    cause: causeOf(fact),
    rollback: false,
    ...('event' in fact && 'actionId' in fact.event && { action_id: fact.event.actionId }),
    funding_index: index.toString(),
    account: idOf('event' in fact ? fact.event.account : fact.payer),
    ...evidenceOf(fact),
    ...mined,
    positions: [...after].map(([account, position]) =>
      positionChange(idOf(account), before.get(account) ?? FLAT, position),
    ),
    balances: freeDeltas(fact)
      .filter(({ delta }) => delta !== 0n)
      .map(({ account, delta }) => ({ user_id: idOf(account), free_delta: delta.toString() })),
    orders: closed.map((order) => settledOrder(order, 0n)),
    ...(fact.kind === 'insolvency_reported' && { deficit: fact.event.deficit.toString() }),
  }
}
