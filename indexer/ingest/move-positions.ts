/**
 * Applies facts that change positions outside batches: inheritance by the backstop, deleveraging, adjustments by their owners, and the
 * deficits and claims of a wind-down. The new positions follow from the event by the rules of `domain/`; if the rules do not explain the event, the positions
 * are read from the contract and the caller records a mismatch.
 */

import type { Tx } from '../../db/client.ts'
import { loadMinedFunding } from '../../db/funding.ts'
import { InvariantError } from '../../domain/invariant.ts'
import type { SettledOrder } from '../../domain/journal/batch-rows.ts'
import { marketShard, type PositionsMoved } from '../../domain/journal/journal-row.ts'
import { applyAdjusted } from '../../domain/positions/adjustment-replay.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import { emptied } from '../../domain/risk/liquidation.ts'
import { applyDeleveraged, applyInherited } from '../../domain/risk/risk-replay.ts'
import type { FailureKind } from '../../domain/settlement/receipt.ts'
import { type MinedAt, positionChange } from '../../domain/settlement/settle-part.ts'
import {
  closeWithMove,
  type MovedSize,
  reopenWithPosition,
  type SettlingOrder,
  settledOrder,
} from '../../domain/settlement/settling-order.ts'
import type { Address } from '../../domain/units.ts'
import type { Chain } from '../ports.ts'
import type {
  ClaimedFact,
  DeficitCoveredFact,
  InsolvencyReportedFact,
  PositionAdjustedFact,
  PositionInheritedFact,
  PositionsDeleveragedFact,
} from './facts.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'
import { loadMoved, loadOrders, loadVoided } from './settling-orders.ts'
import { loadMinedPositions, writeMove } from './write-part.ts'

export type PositionMoveFact =
  | PositionAdjustedFact
  | PositionInheritedFact
  | PositionsDeleveragedFact
  | InsolvencyReportedFact
  | ClaimedFact
  | DeficitCoveredFact

type Positions = ReadonlyMap<Address, Position>

/** The accounts whose position or free balance changes. */
export function movedAccounts(fact: PositionMoveFact): Address[] {
  switch (fact.kind) {
    case 'position_inherited':
      return [fact.event.account, fact.event.backstop]
    case 'positions_deleveraged':
      return [fact.event.account, ...closedLegs(fact).map(({ counterparty }) => counterparty)]
    case 'deficit_covered':
      return [fact.payer]
    default:
      return [fact.event.account]
  }
}

const closedLegs = ({ event }: PositionsDeleveragedFact) => event.legs.filter(({ steps }) => steps > 0)

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
function movedPositions(fact: PositionMoveFact, before: Positions): Positions | null {
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

/** What decided the move: see `PositionsMoved`. */
function evidenceOf(
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

interface MoveContext {
  readonly tx: Tx
  readonly chain: Pick<Chain, 'position'>
  readonly shards: LockedShards
  readonly users: ReadonlyMap<Address, number>
}

export interface AppliedMove {
  readonly place: RowPlace
  /** Set if the rules of `domain/` do not explain the event. */
  readonly failure: FailureKind | null
}

/** The caller has locked the market's shard and the account rows. */
export async function applyMove(
  { tx, chain, shards, users }: MoveContext,
  fact: PositionMoveFact,
  mined: MinedAt,
): Promise<AppliedMove> {
  const { marketId, trader } = fact.spec
  const accounts = movedAccounts(fact)
  const known = new Map([...users].filter(([address]) => accounts.includes(address)))
  const before = await loadMinedPositions(tx, marketId, known)
  const explained = movedPositions(fact, before)
  const after = explained ?? (await positionsOnChain(chain, trader, accounts, mined.block))
  const idOf = (account: Address) => known.get(account) as number
  const moves = [...after].map(([account, position]) => [idOf(account), position] as const)
  const evidence = evidenceOf(fact)
  const time = { part: null, asOf: evidence.as_of ?? null }
  const { moved, reduceOnly } = await loadMoved(tx, marketId, new Map(moves), time)
  const closed = reduceOnly.flatMap((order) => {
    const ended = closeWithMove(order, moved.get(order.userId) as MovedSize)
    return ended === null ? [] : [ended.order]
  })
  const index =
    'event' in fact && 'fundingIndex' in fact.event
      ? fact.event.fundingIndex
      : (await loadMinedFunding(tx, marketId)).index
  const row: PositionsMoved = {
    kind: 'positions_moved',
    cause: causeOf(fact),
    rollback: false,
    ...('event' in fact && 'actionId' in fact.event && { action_id: fact.event.actionId }),
    funding_index: index.toString(),
    account: idOf('event' in fact ? fact.event.account : fact.payer),
    ...evidence,
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
  await writeMove(tx, marketId, row, closed)
  const place = shards.append(marketShard(marketId), row)
  return { place, failure: explained === null ? 'trade_events_without_position_updates' : null }
}

/** The row that takes a move back, and the reduce-only orders as they were before it. */
export async function rollBackMove(
  tx: Tx,
  row: PositionsMoved,
): Promise<{ row: PositionsMoved; orders: SettlingOrder[] }> {
  const closed = new Map(row.orders?.map((order) => [order.order_id, order]))
  const orders = await loadOrders(tx, [...closed.keys()])
  const voided = await loadVoided(
    tx,
    orders.flatMap(({ closedBy }) => closedBy ?? []),
  )
  const restored = orders.map((order) => {
    // A void returns live orders to the book, but not those that the move had ended.
    const closedBy = order.closedBy === null || voided.has(order.closedBy) ? null : order.closedBy
    return reopenWithPosition({ ...order, closedBy }, closed.get(order.orderId) as SettledOrder)
  })
  const statuses = restored.map((order) => settledOrder(order, 0n))
  return { row: { ...row, rollback: true, orders: statuses }, orders: restored }
}

async function positionsOnChain(
  chain: Pick<Chain, 'position'>,
  trader: Address,
  accounts: readonly Address[],
  block: number,
): Promise<Positions> {
  const positions = accounts.map(
    async (account) => [account, await chain.position(trader, account, block)] as const,
  )
  return new Map(await Promise.all(positions))
}
