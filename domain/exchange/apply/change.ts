/** Row changes shared by several journal rows. */
import { violated } from '../../invariant.ts'
import type { MatchedPosition, PositionChange } from '../../journal/batch-rows.ts'
import { acceptedSeq } from '../../orders/order.ts'
import type { MarketId, Quote, Seq, Steps, UserId } from '../../units.ts'
import type { ExchangeState } from '../state.ts'
import { flatPosition } from '../tables/accounts.ts'
import type { MarketRow, ProgressRow } from '../tables/markets.ts'
import type { OrderNote, OrderRow } from '../tables/orders.ts'

/** Place of a row in the journal of a market. */
export interface Place {
  readonly marketId: MarketId
  readonly seq: Seq
}

export interface FundsDelta {
  readonly free?: bigint
  readonly pendingWithdrawal?: bigint
  readonly reserved?: bigint
}

export function addFunds(state: ExchangeState, userId: number, delta: FundsDelta): void {
  const { free = 0n, pendingWithdrawal = 0n, reserved = 0n } = delta
  if (free === 0n && pendingWithdrawal === 0n && reserved === 0n) return
  const before = state.accounts.need(userId)
  state.accounts.put({
    userId: before.userId,
    free: (before.free + free) as Quote,
    pendingWithdrawal: (before.pendingWithdrawal + pendingWithdrawal) as Quote,
    reserved: (before.reserved + reserved) as Quote,
  })
}

/** The order with this id; undefined if this database has never accepted it. */
export const findOrder = (state: ExchangeState, { marketId }: Place, orderId: string): OrderRow | undefined =>
  state.orders.get(marketId, acceptedSeq(orderId))

export function needOrder(state: ExchangeState, place: Place, orderId: string): OrderRow {
  const order = findOrder(state, place, orderId)
  if (order === undefined) throw violated(`a row names the order ${orderId} after its placement`)
  return order
}

const NO_NOTE = { note: null, closedBy: null, triggered: null }

/** Changes an order's optional texts. An empty note is removed. */
export function changeNote(
  state: ExchangeState,
  orderId: string,
  fields: Partial<Omit<OrderNote, 'orderId'>>,
): void {
  const before = state.orderNotes.get(orderId)
  const after = { ...NO_NOTE, ...before, ...fields, orderId }
  const isEmpty = after.note === null && after.closedBy === null && after.triggered === null
  if (!isEmpty) state.orderNotes.put(after)
  else if (before !== undefined) state.orderNotes.remove(orderId)
}

export function changeMarket(state: ExchangeState, { marketId }: Place, fields: Partial<MarketRow>): void {
  state.markets.put({ ...state.markets.need(String(marketId)), ...fields })
}

export function changeProgress(
  state: ExchangeState,
  { marketId }: Pick<Place, 'marketId'>,
  fields: Partial<ProgressRow>,
): void {
  state.progress.put({ ...state.progress.need(marketId), ...fields })
}

/** Sets matched positions. */
export function setMatched(
  state: ExchangeState,
  { marketId }: Place,
  positions: readonly MatchedPosition[],
): void {
  for (const { user_id, size, entry_notional, folded_margin, leverage } of positions) {
    const userId = user_id as UserId
    state.positions.put({
      ...(state.positions.get(userId, marketId) ?? flatPosition(userId, marketId)),
      matchedSize: size as Steps,
      matchedEntryNotional: BigInt(entry_notional) as Quote,
      matchedFoldedMargin: BigInt(folded_margin) as Quote,
      matchedLeverage: leverage,
    })
  }
}

/**
 * Moves mined positions. `isUnmatched`: the account's matched position moves too, because no batch had
 * matched the move.
 */
export function moveMined(
  state: ExchangeState,
  { marketId }: Place,
  { positions, rollback }: { readonly positions: readonly PositionChange[]; readonly rollback: boolean },
  isUnmatched: (userId: number) => boolean,
): void {
  const sign = rollback ? -1n : 1n
  for (const change of positions) {
    const userId = change.user_id as UserId
    const before = state.positions.get(userId, marketId) ?? flatPosition(userId, marketId)
    const size = Number(sign) * change.size_delta
    const entry = sign * BigInt(change.entry_notional_delta)
    const margin = sign * BigInt(change.folded_margin_delta)
    const leverage = rollback ? change.leverage_before : change.leverage_after
    const isAlong = isUnmatched(userId)
    state.positions.put({
      ...before,
      size: (before.size + size) as Steps,
      entryNotional: (before.entryNotional + entry) as Quote,
      foldedMargin: (before.foldedMargin + margin) as Quote,
      leverage,
      matchedSize: (before.matchedSize + (isAlong ? size : 0)) as Steps,
      matchedEntryNotional: (before.matchedEntryNotional + (isAlong ? entry : 0n)) as Quote,
      matchedFoldedMargin: (before.matchedFoldedMargin + (isAlong ? margin : 0n)) as Quote,
      matchedLeverage: isAlong ? leverage : before.matchedLeverage,
    })
  }
}
