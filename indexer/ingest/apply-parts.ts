/**
 * Applies consecutive parts of a block together: what they apply to is read once, each part is settled in the chain's order on the state
 * that the part before it left in memory, and the result is written once per table. The end state and the journal rows are
 * those of applying each part alone (`applyPart` in `apply.ts`), which is what happens to parts that were not matched here.
 */
import type { LedgerChange } from '../../db/accounts.ts'
import { settleActions } from '../../db/actions.ts'
import { settleBatches } from '../../db/batches.ts'
import type { Tx } from '../../db/client.ts'
import { settleFills } from '../../db/fills.ts'
import { recordFunding } from '../../db/funding.ts'
import { settleOrders } from '../../db/orders.ts'
import { type MinedChange, moveMined } from '../../db/positions.ts'
import type { PartMined } from '../../domain/chain/facts.ts'
import type { PartSettled } from '../../domain/journal/batch-rows.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import { type Mismatch, NO_EVENTS } from '../../domain/settlement/receipt.ts'
import { reconcile } from '../../domain/settlement/reconcile.ts'
import {
  type MinedAt,
  movementOf,
  type PartState,
  positionChange,
  settlePart,
  type UnsettledFill,
  unmatchedMakers,
} from '../../domain/settlement/settle-part.ts'
import type { Address } from '../../domain/units.ts'
import type { ChainBlock, ChainLog } from '../ports.ts'
import { type LoadedParts, loadParts, partKey, partOf, waitingFills } from './load-parts.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'
import { NO_MOVES } from './settling-orders.ts'
import { minedFunding } from './single-actions.ts'
import type { StepAccounts } from './step-accounts.ts'
import { ledgerChanges } from './write-part.ts'

export interface LoggedPart {
  readonly fact: PartMined
  readonly log: ChainLog
}

export interface PartMismatch extends Mismatch {
  readonly marketId: number
  readonly txHash: string
  readonly batchId: number
  readonly part: number
}

interface PartContext {
  readonly tx: Tx
  readonly block: ChainBlock
  readonly shards: LockedShards
  readonly users: ReadonlyMap<Address, number>
  readonly accounts: StepAccounts
  readonly mismatches: { push(found: PartMismatch): unknown }
}

/** Most parts whose state is in memory at once. */
const MOST_PARTS = 200

/** Block time counts whole seconds: a part must not be mined before its auction. */
export const partMinedAt = (
  block: ChainBlock,
  { settled }: Pick<PartMined, 'settled'>,
  log: ChainLog,
): MinedAt => ({
  ...{ block: block.number, tx_hash: log.txHash, log_index: log.logIndex },
  at: Math.max(block.timestamp * 1000, settled.asOf),
})

/** The places of the parts' rows. `applyAlone` applies a part that was not matched here, or that the rules do not explain. */
export async function applyParts(
  context: PartContext,
  parts: readonly LoggedPart[],
  applyAlone: (part: LoggedPart) => Promise<RowPlace>,
): Promise<RowPlace[]> {
  const { tx } = context
  const facts = parts.map(({ fact }) => fact)
  const waiting = await waitingFills(tx, facts)
  const places: RowPlace[] = []
  for (let at = 0; at < parts.length; at = places.length) {
    const together = matchedFrom(parts, at, waiting)
    const isLast = together.length === parts.length
    if (together.length > 0) places.push(...(await applyTogether(context, together, waiting, isLast)))
    // What stopped a run is applied alone, so that each round applies at least one part.
    const next = parts[places.length]
    if (next !== undefined && places.length < at + Math.max(1, together.length)) {
      places.push(await applyAlone(next))
    }
    for (const { fact } of parts.slice(at, places.length)) waiting.delete(partKey(fact))
  }
  return places
}

/** The parts from there on whose every fill was matched here. Each part is mined once; were it not, its second event would be of no waiting fill. */
function matchedFrom(
  parts: readonly LoggedPart[],
  from: number,
  waiting: ReadonlyMap<string, readonly UnsettledFill[]>,
): LoggedPart[] {
  const keys = new Set<string>()
  const matched: LoggedPart[] = []
  for (const part of parts.slice(from, from + MOST_PARTS)) {
    const key = partKey(part.fact)
    const fills = waiting.get(key)
    if (keys.has(key) || fills === undefined || unmatchedMakers(part.fact.settled, fills).size > 0) break
    keys.add(key)
    matched.push(part)
  }
  return matched
}

/** Applies the parts up to the first one that the rules do not explain. `isLast`: no fact follows the parts. */
async function applyTogether(
  context: PartContext,
  parts: readonly LoggedPart[],
  waiting: ReadonlyMap<string, readonly UnsettledFill[]>,
  isLast: boolean,
): Promise<RowPlace[]> {
  const facts = parts.map(({ fact }) => fact)
  const fills = facts.flatMap((fact) => waiting.get(partKey(fact)) ?? [])
  const run = new PartRun(context, await loadParts(context.tx, facts, fills, context.users))
  const places: RowPlace[] = []
  for (const part of parts) {
    const row = run.settle(part, waiting.get(partKey(part.fact)) ?? [])
    if (row === null) break
    places.push(context.shards.append(marketShard(part.fact.spec.marketId), row))
  }
  await context.accounts.change(run.ledger, { isLast: isLast && places.length === parts.length })
  await run.write(context.tx)
  return places
}

/** The state in memory, and what has changed of it. */
class PartRun {
  readonly #context: PartContext
  readonly #state: LoadedParts
  /** By market and user: the position before the run and after its last part. */
  readonly #moved = new Map<string, { marketId: number; userId: number; before: Position; after: Position }>()
  /** The changes of account rows. */
  readonly ledger: LedgerChange[] = []
  /** The changed orders: when each ended, if it did. */
  readonly #endedAt = new Map<string, number>()
  readonly #settled: { readonly fact: PartMined; readonly row: PartSettled }[] = []
  /** By market, and within it by maker and salt or by the forced order's number. */
  readonly #idOf = new Map<string, string>()

  constructor(context: PartContext, state: LoadedParts) {
    this.#context = context
    this.#state = state
    for (const [id, { marketId, order }] of state.orders) {
      if (!order.isForced) this.#idOf.set(`${marketId}-${order.maker}-${order.salt}`, id)
    }
  }

  /** The part's row. Null, without any change, if the rules do not explain the part. */
  settle({ fact, log }: LoggedPart, fills: readonly UnsettledFill[]): PartSettled | null {
    const { spec, settled } = fact
    const { marketId } = spec
    const state = this.#stateOf(fact, fills)
    const movement = movementOf(spec, settled, state.positions)
    const terms = this.#state.terms.get(partKey(fact))
    if (movement === null || terms === undefined) return null
    const verdict = reconcile(
      { ...NO_EVENTS, settled, movesPositions: true },
      { kind: 'part', ...terms, fills },
    )
    if (!verdict.ok) {
      const place = { marketId, txHash: log.txHash, batchId: settled.batchId, part: settled.part }
      this.#context.mismatches.push({ ...verdict.refusal, ...place })
    }
    const mined = partMinedAt(this.#context.block, fact, log)
    const { row, orders } = settlePart(marketId, settled, movement, state, mined)
    this.#settled.push({ fact, row })
    for (const order of orders) {
      const had = this.#state.orders.get(order.orderId)?.order.statusReason ?? null
      this.#state.orders.set(order.orderId, { marketId, order })
      if (had === null || !this.#endedAt.has(order.orderId)) this.#endedAt.set(order.orderId, row.at)
    }
    this.#move(marketId, state, movement.positions)
    this.#charge(row)
    return row
  }

  #stateOf(fact: PartMined, fills: readonly UnsettledFill[]): PartState {
    const { marketId } = fact.spec
    const { users: known } = this.#context
    const { ledger, positions, orders } = this.#state
    const makers = new Set(fact.settled.fills.map(({ maker }) => maker))
    const users = new Map([...makers].map((maker) => [maker, known.get(maker) as number]))
    const named = fact.settled.fills
      .filter(({ isForced }) => !isForced)
      .flatMap(({ maker, salt }) => this.#idOf.get(`${marketId}-${maker}-${salt}`) ?? [])
    const forced = fills.filter(({ isForced }) => isForced).map(({ orderId }) => orderId)
    const ids = new Set([...named, ...forced])
    return {
      ...{ users, ledger, fills, ...NO_MOVES },
      positions: positions.get(marketId) ?? new Map(),
      orders: [...ids].flatMap((id) => orders.get(id)?.order ?? []),
      leaving: this.#leavingWith(marketId, new Set(users.values()), fills),
    }
  }

  #leavingWith(marketId: number, users: ReadonlySet<number>, fills: readonly UnsettledFill[]) {
    const fillIds = new Set(fills.map(({ fillId }) => fillId))
    return this.#state.leaving.flatMap((id) => {
      const stored = this.#state.orders.get(id)
      if (stored?.marketId !== marketId || !users.has(stored.order.userId)) return []
      const { statusReason, closedBy } = stored.order
      return statusReason === null && closedBy !== null && fillIds.has(closedBy) ? [stored.order] : []
    })
  }

  #move(marketId: number, { users }: PartState, positions: ReadonlyMap<Address, Position>): void {
    const own = this.#state.positions.get(marketId)
    for (const [maker, after] of positions) {
      const userId = users.get(maker) as number
      const key = `${marketId}-${userId}`
      const before = this.#moved.get(key)?.before ?? own?.get(maker) ?? FLAT
      this.#moved.set(key, { marketId, userId, before, after })
      own?.set(maker, after)
    }
  }

  #charge(row: PartSettled): void {
    const { ledger } = this.#state
    for (const change of ledgerChanges(row)) {
      this.ledger.push(change)
      const entry = ledger.get(change.user_id)
      if (entry === undefined) continue
      const free = entry.free + BigInt(change.free ?? 0)
      ledger.set(change.user_id, { free, pending: entry.pending + BigInt(change.pending_withdrawal ?? 0) })
    }
  }

  /** Writes everything but the changes of account rows. */
  async write(tx: Tx): Promise<void> {
    if (this.#settled.length === 0) return
    await moveMined(tx, [...this.#moved.values()].map(minedChange))
    const orders = [...this.#endedAt.keys()].flatMap((id) => this.#state.orders.get(id)?.order ?? [])
    await settleOrders(tx, orders, (id) => this.#endedAt.get(id) as number)
    const fillIds = this.#settled.flatMap(({ row }) => row.fills.map(({ fill_id }) => fill_id))
    await settleFills(tx, fillIds, 'MINED')
    const parts = this.#settled.map(({ fact }) => partOf(fact))
    await settleActions(tx, parts, { rollback: false })
    await settleBatches(tx, parts)
    const funding = this.#settled.flatMap(({ fact }) => {
      const mined = minedFunding(fact)
      return mined === null ? [] : [{ marketId: fact.spec.marketId, funding: mined }]
    })
    await recordFunding(tx, funding)
  }
}

function minedChange({
  marketId,
  userId,
  before,
  after,
}: {
  readonly marketId: number
  readonly userId: number
  readonly before: Position
  readonly after: Position
}): MinedChange {
  const change = positionChange(userId, before, after)
  return {
    ...{ market_id: marketId, user_id: userId, size: change.size_delta, unmatched: false },
    ...{ entry_notional: change.entry_notional_delta, folded_margin: change.folded_margin_delta },
    leverage: change.leverage_after,
  }
}
