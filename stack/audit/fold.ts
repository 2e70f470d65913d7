/** Adds up balances and positions from the rows of the journal alone. Pure. */
import type { PartSettled } from '../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'

export interface Holdings {
  /** Free balance and pending withdrawal by user. */
  readonly balances: Map<number, { free: bigint; pending: bigint }>
  /** By `<user>:<market>`. */
  readonly positions: Map<string, PositionTotals>
}

export interface PositionTotals {
  size: number
  entryNotional: bigint
  foldedMargin: bigint
}

const positionKey = (userId: number, marketId: number): string => `${userId}:${marketId}`

export const noHoldings = (): Holdings => ({ balances: new Map(), positions: new Map() })

/** Adds one row of the market's shard; `marketId` is 0 for rows of the accounts shard. Rows that change no balance add nothing. */
export function fold(holdings: Holdings, row: JournalRow, marketId: number): void {
  if (row.kind === 'balance_changed') {
    const sign = row.rollback ? -1n : 1n
    const balance = balanceOf(holdings, row.user_id)
    balance.free += sign * BigInt(row.free_delta)
    balance.pending += sign * BigInt(row.pending_withdrawal_delta)
  }
  if (row.kind !== 'part_settled' && row.kind !== 'positions_moved') return
  const sign = row.rollback ? -1 : 1
  if (row.kind === 'positions_moved') {
    for (const { user_id, free_delta } of row.balances) {
      balanceOf(holdings, user_id).free += BigInt(sign) * BigInt(free_delta)
    }
  } else foldFills(holdings, row)
  for (const change of row.positions) {
    const position = positionOf(holdings, positionKey(change.user_id, marketId))
    position.size += sign * change.size_delta
    position.entryNotional += BigInt(sign) * BigInt(change.entry_notional_delta)
    position.foldedMargin += BigInt(sign) * BigInt(change.folded_margin_delta)
  }
}

function foldFills(holdings: Holdings, row: PartSettled): void {
  const sign = row.rollback ? -1 : 1
  for (const fill of row.fills) {
    const balance = balanceOf(holdings, fill.user_id)
    balance.free += BigInt(sign) * (BigInt(fill.free_delta) + BigInt(fill.from_pending))
    balance.pending -= BigInt(sign) * BigInt(fill.from_pending)
  }
}

function balanceOf({ balances }: Holdings, userId: number) {
  const existing = balances.get(userId)
  if (existing !== undefined) return existing
  const created = { free: 0n, pending: 0n }
  balances.set(userId, created)
  return created
}

function positionOf({ positions }: Holdings, key: string): PositionTotals {
  const existing = positions.get(key)
  if (existing !== undefined) return existing
  const created = { size: 0, entryNotional: 0n, foldedMargin: 0n }
  positions.set(key, created)
  return created
}
