/** The signed-in account as the page shows it. Empty for a visitor. `trader.ts` fills it. */
import { computed, signal } from '@preact/signals'
import type { UserBalance } from '../../client/live/messages.ts'
import type { Balance, Fill, PlacedOrder, Position, Transaction } from '../../client/responses.ts'
import { mul } from '../base/numbers.ts'
import { prices } from '../feed/markets.ts'

/** Counts messages of the feed in which an own order has ended. */
export const endings = signal(0)
export const openOrders = signal<readonly PlacedOrder[]>([])
/** Newest first. */
export const fills = signal<readonly Fill[]>([])
/** `failure`: why the chain has not settled it, once that is read. */
export interface VoidedFill extends Fill {
  readonly failure: string | null
}

/** Fills of batches that were voided in this session, newest first. */
export const voidedFills = signal<readonly VoidedFill[]>([])
export const transactions = signal<readonly Transaction[]>([])
/** With margin and liquidation price, as REST computes them. */
export const positions = signal<readonly Position[]>([])
export const freeBalance = signal<UserBalance | null>(null)
/** With the margin of positions. */
export const balance = signal<Balance | null>(null)

/** Own filled quantity by `market-batch`: both sides of a self-trade count. */
export const ownShares = computed<ReadonlyMap<string, bigint>>(() => {
  const shares = new Map<string, bigint>()
  for (const { market_id, batch_id, quantity_e18_raw } of fills.value) {
    const key = `${market_id}-${batch_id}`
    shares.set(key, (shares.get(key) ?? 0n) + BigInt(quantity_e18_raw) * 2n)
  }
  return shares
})

export const isWaiting = ({ status }: PlacedOrder): boolean => status === 'PENDING_TRIGGER'

/** Limit orders move their price, and orders that wait for their trigger move the trigger. */
export const isMovable = (order: PlacedOrder): boolean =>
  !order.forced && (order.order_type === 'LIMIT' || isWaiting(order))

/** At the mark of the feed: value less what was paid at entry. Null without a mark. */
export function unrealizedPnl({ market_id, size_e18_raw, entry_notional_e18_raw }: Position): bigint | null {
  const mark = prices.value.get(market_id)?.mark_price_e18_raw
  if (mark == null) return null
  return mul(BigInt(size_e18_raw), BigInt(mark)) - signedEntry(size_e18_raw, entry_notional_e18_raw)
}

function signedEntry(size: string, notional: string): bigint {
  const entry = BigInt(notional)
  const magnitude = entry < 0n ? -entry : entry
  return BigInt(size) < 0n ? -magnitude : magnitude
}

export const totalPnl = computed<bigint>(() =>
  positions.value.reduce((sum, position) => sum + (unrealizedPnl(position) ?? 0n), 0n),
)

export const positionIn = (marketId: number): Position | undefined =>
  positions.value.find(({ market_id }) => market_id === marketId)

export function clearAccount(): void {
  openOrders.value = []
  fills.value = []
  voidedFills.value = []
  transactions.value = []
  positions.value = []
  freeBalance.value = null
  balance.value = null
}
