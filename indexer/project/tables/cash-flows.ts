/** `read.cash_flows`: deposits and withdrawals of each account by hour and by day. With realized profits they are its collateral. Pure. */
import type { Selectable } from 'kysely'
import type { ReadCashFlowsTable } from '../../../db/read-equity-schema.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { type ShardEntry, signedWei } from '../row-change.ts'
import { PROFIT_SPANS } from './realized-profits.ts'

type CashFlow = Selectable<ReadCashFlowsTable>

/** A market's settlement can draw on a pending withdrawal, so that several shards write the rows of an account. */
const CASH_FLOWS = tableOf<CashFlow>({
  table: 'read.cash_flows',
  key: ['user_id', 'span', 'start'],
  columns: {
    user_id: 'bigint',
    span: 'bigint',
    start: 'bigint',
    deposits: 'numeric',
    withdrawals: 'numeric',
  },
  isShared: true,
})

interface Flow {
  readonly user_id: number
  readonly at: number
  readonly deposits: bigint
  readonly withdrawals: bigint
}

/**
 * Amounts that entered or left free balance and margins other than by trading. A withdrawal counts at its request; a
 * debit paid from a pending withdrawal reduces it.
 */
function flowsOf({ row }: ShardEntry): Flow[] {
  switch (row.kind) {
    case 'balance_changed': {
      const delta = signedWei(row, row.free_delta)
      return [
        flow(
          row,
          row.user_id,
          row.cause === 'withdrawal_request' ? { withdrawals: -delta } : { deposits: delta },
        ),
      ]
    }
    case 'part_settled':
      return row.fills.map(({ user_id, from_pending }) =>
        flow(row, user_id, { withdrawals: -signedWei(row, from_pending) }),
      )
    case 'positions_moved':
      if (row.cause !== 'deficit_covered') return []
      return row.balances.map(({ user_id, free_delta }) =>
        flow(row, user_id, { withdrawals: -signedWei(row, free_delta) }),
      )
    default:
      return []
  }
}

const flow = (
  { at }: { readonly at: number },
  user_id: number,
  { deposits = 0n, withdrawals = 0n }: Partial<Pick<Flow, 'deposits' | 'withdrawals'>>,
): Flow => ({ user_id, at, deposits, withdrawals })

/** One row per account and interval, ascending by key: chunks lock rows in one order. */
function sumFlows(flows: readonly Flow[]): CashFlow[] {
  const sums = new Map<string, CashFlow>()
  for (const { user_id, at, deposits, withdrawals } of flows) {
    if (deposits === 0n && withdrawals === 0n) continue
    for (const span of PROFIT_SPANS) {
      const start = at - (at % span)
      const key = [user_id, span, start].map((part) => String(part).padStart(16, '0')).join()
      const known = sums.get(key)
      sums.set(key, {
        user_id,
        span,
        start,
        deposits: (known?.deposits ?? 0n) + deposits,
        withdrawals: (known?.withdrawals ?? 0n) + withdrawals,
      })
    }
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}

export const cashFlows: Projection = {
  name: 'cash_flows',
  version: 1,
  tables: PROJECTED_TABLES.cash_flows,
  project: async (_tx, entries) => ({ clauses: [CASH_FLOWS.add(sumFlows(entries.flatMap(flowsOf)))] }),
}
