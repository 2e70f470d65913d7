/** `read.ledger_transactions`: one row per deposit, withdrawal, adjustment, liquidation and payout of an account. */
import type { Selectable } from 'kysely'
import type { ReadLedgerTransactionsTable } from '../../../db/read-schema.ts'
import type { BalanceChanged } from '../../../domain/journal/accounts-row.ts'
import type { FillSettled, PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { PositionsMoved } from '../../../domain/journal/journal-row.ts'
import { abs } from '../../../domain/units.ts'
import { tableOf } from '../read-table.ts'
import type { RowChange, ShardEntry } from '../row-change.ts'
import { marginChange } from './margin-change.ts'

export type LedgerTransaction = Selectable<ReadLedgerTransactionsTable>

export const LEDGER_TRANSACTIONS = tableOf<LedgerTransaction>({
  table: 'read.ledger_transactions',
  key: ['id'],
  columns: {
    id: 'text',
    user_id: 'bigint',
    type: 'text',
    market_id: 'integer',
    amount: 'numeric',
    available_margin_delta: 'numeric',
    tx_hash: 'text',
    log_index: 'integer',
    block: 'bigint',
    at: 'bigint',
  },
})

/** The id of what an event that is no action did to an account. */
export const eventTransactionId = (
  { tx_hash, log_index }: { readonly tx_hash: string; readonly log_index: number },
  userId: number,
): string => `${tx_hash}-${log_index}-${userId}`

/**
 * A withdrawal is recorded at its request, which debits the free balance. Collected fees are a deposit of the
 * treasury's account, so that each account's transactions add up.
 */
const TYPES = { deposit: 'deposit', fees_collected: 'deposit', withdrawal_request: 'withdrawal' } as const

export function ledgerTransactionChanges({ marketId, row }: ShardEntry): RowChange<LedgerTransaction>[] {
  switch (row.kind) {
    case 'balance_changed':
      return row.cause in TYPES ? [moved(row)] : []
    case 'positions_moved':
      return moves(marketId, row)
    case 'part_settled':
      return soldByLiquidation(marketId, row)
    default:
      return []
  }
}

function moves(marketId: number, row: PositionsMoved): RowChange<LedgerTransaction>[] {
  switch (row.cause) {
    case 'margin_adjusted':
    case 'leverage_adjusted':
      return adjusted(marketId, row)
    case 'inherited':
    case 'deleveraged':
      return movedByLiquidation(marketId, row)
    case 'claimed':
    case 'deficit_covered':
      return paidOut(marketId, row)
    case 'insolvency_reported':
      return []
  }
}

type Source = BalanceChanged | PositionsMoved | PartSettled

const change = (
  row: Source,
  userId: number,
  fields: Pick<LedgerTransaction, 'type' | 'market_id' | 'amount' | 'available_margin_delta'>,
): RowChange<LedgerTransaction> => {
  const { tx_hash, log_index, block, at } = row
  const id = eventTransactionId(row, userId)
  const transaction = { id, user_id: userId, ...fields, tx_hash, log_index, block, at }
  return { key: id, apply: () => (row.rollback ? undefined : transaction) }
}

function moved(row: BalanceChanged): RowChange<LedgerTransaction> {
  const delta = BigInt(row.free_delta)
  const type = TYPES[row.cause as keyof typeof TYPES]
  return change(row, row.user_id, {
    ...{ type, market_id: null, amount: abs(delta), available_margin_delta: delta },
  })
}

/** A change of leverage may move nothing: then both amounts are 0. */
const adjusted = (market_id: number, row: PositionsMoved): RowChange<LedgerTransaction>[] =>
  row.positions.map(({ user_id, folded_margin_delta }) => {
    const added = BigInt(folded_margin_delta)
    const marginType = added < 0n ? 'remove_margin' : 'add_margin'
    const type = row.cause === 'leverage_adjusted' ? 'adjust_leverage' : marginType
    return change(row, user_id, { type, market_id, amount: abs(added), available_margin_delta: -added })
  })

/** The claim of a market that has ended, paid into the free balance; negative: the free balance covered a deficit of it. */
const paidOut = (market_id: number, row: PositionsMoved): RowChange<LedgerTransaction>[] =>
  row.balances.map(({ user_id, free_delta }) => {
    const paid = BigInt(free_delta)
    const type = 'market_delisting_payout'
    return change(row, user_id, { type, market_id, amount: abs(paid), available_margin_delta: paid })
  })

/**
 * One transaction per account whose position moved: margin lost (received by the backstop), and the change of the free
 * balance.
 */
function movedByLiquidation(marketId: number, row: PositionsMoved): RowChange<LedgerTransaction>[] {
  const paid = new Map(row.balances.map(({ user_id, free_delta }) => [user_id, BigInt(free_delta)]))
  return row.positions.map((position) =>
    change(row, position.user_id, {
      ...{ type: 'liquidation', market_id: marketId, amount: abs(marginChange(row, position)) },
      available_margin_delta: paid.get(position.user_id) ?? 0n,
    }),
  )
}

/**
 * Transactions of accounts with forced fills. Margin released by a fill: received by the free balance - profit + fee.
 * Other fills of the account do not count.
 */
function soldByLiquidation(marketId: number, row: PartSettled): RowChange<LedgerTransaction>[] {
  const sold = Map.groupBy(
    row.fills.filter(({ forced }) => forced),
    ({ user_id }) => user_id,
  )
  const sum = (fills: readonly FillSettled[], of: (fill: FillSettled) => bigint): bigint =>
    fills.reduce((total, fill) => total + of(fill), 0n)
  return [...sold].map(([userId, fills]) =>
    change(row, userId, {
      ...{ type: 'liquidation', market_id: marketId },
      amount: abs(
        sum(fills, (fill) => BigInt(fill.free_delta) + BigInt(fill.fee) - BigInt(fill.realized_pnl)),
      ),
      available_margin_delta: sum(fills, (fill) => BigInt(fill.free_delta) + BigInt(fill.from_pending)),
    }),
  )
}
