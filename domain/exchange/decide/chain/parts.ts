/** Decides mined parts of batches. */
import { makersOf } from '../../../chain/fact-accounts.ts'
import type { LoggedFact, PartMined } from '../../../chain/facts.ts'
import { FLAT } from '../../../positions/position.ts'
import { NO_EVENTS, type PartExpectation } from '../../../settlement/receipt.ts'
import { reconcile } from '../../../settlement/reconcile.ts'
import {
  type Movement,
  movementOf,
  type PartState,
  settlePart,
  type UnsettledFill,
  unmatchedMakers,
} from '../../../settlement/settle-part.ts'
import type { BatchSettled } from '../../../settlement/settlement.ts'
import type { SettlingOrder } from '../../../settlement/settling-order.ts'
import type { Address, MarketId, UserId } from '../../../units.ts'
import { idOf } from '../../apply/orders.ts'
import type { ExchangeState } from '../../state.ts'
import { actionKey, batchKey } from '../../tables/markets.ts'
import type { OrderRow } from '../../tables/orders.ts'
import { type FactContext, minedAt, readPositions, userOf, type WantedPositions } from './fact-context.ts'
import { minedPositions, movedOrders, toSettlingOrder, toUnsettledFill, waitingFills } from './read.ts'

/** Null once the part is applied. */
export function settleMinedPart(
  context: FactContext,
  fact: PartMined,
  log: LoggedFact['log'],
): WantedPositions | null {
  const { spec, settled } = fact
  const { marketId } = spec
  const { draft, mismatches } = context
  const { state } = draft
  const users = new Map(makersOf(fact).map((maker) => [maker, userOf(context, maker)]))
  const fills = waitingFills(state, marketId, settled).map((fill) => toUnsettledFill(state, fill))
  const part = { users, fills, ...partBefore(state, marketId, settled, users, fills) }
  const movement = movementOf(spec, settled, part.positions)
  const moved = movement ?? readMovement(context, fact, log)
  if (moved === null) return { logIndex: log.logIndex, marketId, accounts: [...users.keys()] }
  const verdict = reconcile(
    { ...NO_EVENTS, settled, movesPositions: movement !== null },
    expectationOf(state, marketId, settled, fills),
  )
  if (!verdict.ok) {
    const { batchId, part: number } = settled
    mismatches.push({ ...verdict.refusal, marketId, txHash: log.txHash, batchId, part: number })
  }
  const queued = queuedPart(state, marketId, settled)
  if (queued !== null)
    draft.write(marketId, { kind: 'part_adopted', queue_no: queued, action_id: settled.actionId })
  const moving = [...unmatchedMakers(settled, fills)].map(
    (maker) => [users.get(maker) as UserId, moved.positions.get(maker) ?? FLAT] as const,
  )
  const closing = movedOrders(state, marketId, new Map(moving), { part: settled, asOf: settled.asOf })
  const mined = minedAt(context, log)
  // Block time is in whole seconds, and a part must not be mined before its auction.
  const at = Math.max(mined.at, settled.asOf)
  draft.write(marketId, settlePart(marketId, settled, moved, { ...part, ...closing }, { ...mined, at }).row)
  // The batch is unknown after a restore. The contract would refuse an own batch with this id or a smaller id.
  const { batchId } = settled
  if (fills.length === 0 && batchId > state.progress.need(marketId).lastBatchId)
    draft.write(marketId, { kind: 'batch_id_adopted', batch_id: batchId })
  return null
}

/**
 * Queue number of the part if the journal has no signature for it, because a restore lost it. Otherwise it
 * would be signed again.
 */
function queuedPart(
  state: ExchangeState,
  marketId: MarketId,
  { batchId, part }: BatchSettled,
): number | null {
  const queueNo = state.queues.ofPart(marketId, batchId, part)
  const action = queueNo === undefined ? undefined : state.actions.get(actionKey(marketId, queueNo))
  return action?.status === 'QUEUED' ? action.queue_no : null
}

type PartBefore = Pick<PartState, 'ledger' | 'positions' | 'orders' | 'leaving'>

function partBefore(
  state: ExchangeState,
  marketId: MarketId,
  settled: BatchSettled,
  users: ReadonlyMap<Address, UserId>,
  fills: readonly UnsettledFill[],
): PartBefore {
  const ids = [...users.values()]
  const ledger = new Map(
    ids.map((id): [number, { free: bigint; pending: bigint }] => {
      const { free, pendingWithdrawal } = state.accounts.need(id)
      return [id, { free, pending: pendingWithdrawal }]
    }),
  )
  const byId = minedPositions(state, marketId, ids)
  const positions = new Map([...users].map(([maker, id]) => [maker, byId.get(id) ?? FLAT]))
  return {
    ledger,
    positions,
    orders: ordersOf(state, marketId, settled, users, fills),
    leaving: leavingWith(state, marketId, ids, fills),
  }
}

/** Orders that the part names by maker and salt, and forced orders that wait for it. */
function ordersOf(
  state: ExchangeState,
  marketId: MarketId,
  settled: BatchSettled,
  users: ReadonlyMap<Address, UserId>,
  fills: readonly UnsettledFill[],
): SettlingOrder[] {
  const orders = new Map<string, OrderRow>()
  const add = (order: OrderRow | undefined): void => {
    if (order !== undefined) orders.set(idOf(order), order)
  }
  for (const { maker, salt, isForced } of settled.fills)
    if (!isForced && salt <= Number.MAX_SAFE_INTEGER)
      add(state.orderIndex.withSalt(marketId, users.get(maker) as UserId, Number(salt)))
  const forced = new Set(fills.filter(({ isForced }) => isForced).map(({ fillId }) => fillId))
  if (forced.size > 0)
    for (const fill of waitingFills(state, marketId, settled)) {
      const order = state.orders.need(marketId, fill.accepted)
      if (order.forced) add(order)
    }
  return [...orders.values()].map((order) => toSettlingOrder(state, order))
}

/** Live orders of the accounts that left the book because one of these fills closed their position. */
function leavingWith(
  state: ExchangeState,
  marketId: MarketId,
  accounts: readonly UserId[],
  fills: readonly UnsettledFill[],
): SettlingOrder[] {
  const fillIds = new Set(fills.map(({ fillId }) => fillId))
  if (fillIds.size === 0) return []
  return accounts
    .flatMap((account) => state.orderIndex.liveOf(marketId, account))
    .filter((order) => fillIds.has(state.orderNotes.get(idOf(order))?.closedBy ?? ''))
    .sort((a, b) => a.seq - b.seq)
    .map((order) => toSettlingOrder(state, order))
}

/** The part as sent by the exchange; null if the exchange has no such part. */
function expectationOf(
  state: ExchangeState,
  marketId: MarketId,
  { batchId, part }: BatchSettled,
  fills: readonly UnsettledFill[],
): PartExpectation | null {
  if (fills.length === 0) return null
  const { price, parts, as_of: asOf } = state.batches.need(batchKey(marketId, batchId))
  const queueNo = state.queues.ofPart(marketId, batchId, part)
  const action = queueNo === undefined ? undefined : state.actions.get(actionKey(marketId, queueNo))
  return { kind: 'part', batchId, part, parts, price, asOf, actionId: action?.action_id ?? null, fills }
}

/** Positions after the block, read from the contract. */
function readMovement(context: FactContext, fact: PartMined, log: LoggedFact['log']): Movement | null {
  const positions = readPositions(context, log.logIndex, [...new Set(makersOf(fact))])
  return positions === null ? null : { positions, realised: [] }
}
