/** Reads of a state in the types of the settlement rules. */

import { acceptedSeq, isConditional } from '../../../orders/order.ts'
import { FLAT, type Position } from '../../../positions/position.ts'
import type { UnsettledFill } from '../../../settlement/settle-part.ts'
import type { MovedSize, SettlingOrder } from '../../../settlement/settling-order.ts'
import type { MarketId, UserId } from '../../../units.ts'
import { idOf } from '../../apply/orders.ts'
import { pendingActions } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import type { PositionRow } from '../../tables/accounts.ts'
import { keyOfFloor } from '../../tables/chain.ts'
import { batchKey } from '../../tables/markets.ts'
import type { FillRow, OrderRow } from '../../tables/orders.ts'

// ---------------------------------------------------------------------- orders

export function toSettlingOrder(state: ExchangeState, row: OrderRow): SettlingOrder {
  const { closedBy = null } = state.orderNotes.get(idOf(row)) ?? {}
  return {
    orderId: idOf(row),
    userId: row.account,
    maker: state.users.need(row.account).address,
    salt: BigInt(row.salt),
    isForced: row.forced,
    side: row.side,
    reduceOnly: row.reduceOnly,
    status: row.status,
    statusReason: row.statusReason,
    quantity: row.quantity,
    filled: row.filled,
    settling: row.settling,
    closingReason: row.closingReason,
    closedBy,
    reserved: row.reserved,
    held: row.held,
    waits: isConditional(row.type) && row.triggeredAt === null,
  }
}

/** Orders with these ids that the state still has. */
export const ordersWithIds = (state: ExchangeState, marketId: MarketId, ids: readonly string[]): OrderRow[] =>
  ids.flatMap((id) => state.orders.get(marketId, acceptedSeq(id)) ?? [])

/** Ids of all markets, ascending. */
export const marketIds = (state: ExchangeState): MarketId[] =>
  [...state.markets.rows()].map(({ market_id }) => market_id as MarketId).sort((a, b) => a - b)

// ---------------------------------------------------------------------- positions

export const minedPosition = (row: PositionRow | undefined): Position =>
  row === undefined
    ? FLAT
    : {
        size: row.size,
        entryNotional: row.entryNotional,
        foldedMargin: row.foldedMargin,
        leverage: row.leverage,
      }

/** Mined positions of the accounts that have one. */
export function minedPositions(
  state: ExchangeState,
  marketId: MarketId,
  accounts: Iterable<UserId>,
): Map<UserId, Position> {
  const positions = new Map<UserId, Position>()
  for (const account of accounts) {
    const row = state.positions.get(account, marketId)
    if (row !== undefined) positions.set(account, minedPosition(row))
  }
  return positions
}

// ---------------------------------------------------------------------- margin nonces

/** Minimum valid nonce of the account's signed adjustments in the market. */
export const nonceFloor = (state: ExchangeState, marketId: number, account: string): bigint =>
  BigInt(state.nonceFloors.get(keyOfFloor({ market_id: marketId, account }))?.minimum ?? 0)

// ---------------------------------------------------------------------- fills

export const fillIdOf = ({ marketId, batchId, part, seq }: FillRow): string =>
  `${marketId}-${batchId}-${part}-${seq}`

export interface PartRef {
  readonly batchId: number
  readonly part: number
}

/** Unmined fills of the part, by index within the part. */
export function waitingFills(
  state: ExchangeState,
  marketId: MarketId,
  { batchId, part }: PartRef,
): FillRow[] {
  return (state.partFills.get(`${batchKey(marketId, batchId)}-${part}`) ?? [])
    .map((seq) => state.fills.need(marketId, batchId, part, seq))
    .filter(({ status }) => status !== 'MINED')
    .sort((a, b) => a.place - b.place)
}

export function toUnsettledFill(state: ExchangeState, fill: FillRow): UnsettledFill {
  const order = state.orders.need(fill.marketId, fill.accepted)
  return {
    fillId: fillIdOf(fill),
    orderId: idOf(order),
    maker: state.users.need(order.account).address,
    salt: BigInt(order.salt),
    isForced: order.forced,
    side: fill.side,
    steps: fill.steps,
    takerSteps: fill.takerSteps,
    held: fill.held,
  }
}

/** Each account's last unmined fill of a live order. Fills in `mining` count as mined. */
function lastUnsettled(
  state: ExchangeState,
  marketId: MarketId,
  accounts: ReadonlySet<UserId>,
  mining: PartRef | null,
): Map<UserId, string> {
  const last = new Map<UserId, string>()
  for (const { batch_id: batchId, part } of pendingActions(state, marketId)) {
    if (batchId === null || part === null) continue
    if (batchId === mining?.batchId && part === mining.part) continue
    for (const fill of waitingFills(state, marketId, { batchId, part }))
      if (accounts.has(fill.account)) last.set(fill.account, fillIdOf(fill))
  }
  return last
}

/** Reduce-only orders, and closing sizes, of a block that moves positions without a match. */
export interface MovedOrders {
  readonly moved: ReadonlyMap<number, MovedSize>
  readonly reduceOnly: readonly SettlingOrder[]
}

/**
 * Reduce-only orders whose accounts' matched positions move with the mined positions `after`. `asOf`: time of the batch
 * or action; orders accepted later reduce the next position.
 */
export function movedOrders(
  state: ExchangeState,
  marketId: MarketId,
  after: ReadonlyMap<UserId, Position>,
  { part, asOf }: { readonly part: PartRef | null; readonly asOf: number | null },
): MovedOrders {
  const unsettled = lastUnsettled(state, marketId, new Set(after.keys()), part)
  const moved = [...after].map(([account, { size }]): [number, MovedSize] => {
    const row = state.positions.get(account, marketId)
    const before = row?.size ?? 0
    const open = row?.matchedSize ?? 0
    return [
      account,
      {
        mined: { before, after: size },
        matched: { before: open, after: open + size - before },
        unsettled: unsettled.get(account) ?? null,
      },
    ]
  })
  const rows = [...after.keys()]
    .flatMap((account) => state.orderIndex.liveOf(marketId, account))
    .filter(({ reduceOnly, acceptedAt }) => reduceOnly && (asOf === null || acceptedAt <= asOf))
    .sort((a, b) => a.seq - b.seq)
  return { moved: new Map(moved), reduceOnly: rows.map((row) => toSettlingOrder(state, row)) }
}
