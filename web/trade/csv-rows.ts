/** Rows as CSV. Pure. */
import type { PlacedOrder, Position } from '../../client/responses.ts'
import { fromE18 } from '../base/numbers.ts'

const ORDERS =
  'created_at,order_id,client_order_id,symbol,side,order_type,time_in_force,post_only,reduce_only,price,trigger_price,' +
  'quantity,filled_quantity,average_price,leverage,status,status_reason'
const POSITIONS =
  'symbol,size,pending_size,entry_price,mark_price,liquidation_price,margin,leverage,unrealized_pnl,realized_pnl,' +
  'adl_rank,updated_at'

/** An amount comes from its exact field, any other value as it is. */
function textOf(row: Readonly<Record<string, unknown>>, column: string): string {
  const raw = row[`${column}_e18_raw`] as string | null | undefined
  if (raw === undefined) return String(row[column] ?? '')
  return raw === null ? '' : fromE18(BigInt(raw))
}

/** Quoted where CSV demands it. A text that a spreadsheet would execute gets an apostrophe before it; negative numbers stay. */
function cell(text: string): string {
  const safe = /^[=@+\t\r]|^-(?![\d.]+$)/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe
}

function csvOf(columns: string, rows: readonly object[]): string {
  const names = columns.split(',')
  const lines = rows.map((row) => names.map((name) => cell(textOf({ ...row }, name))).join(','))
  return [columns, ...lines, ''].join('\r\n')
}

export const ordersCsv = (orders: readonly PlacedOrder[]): string => csvOf(ORDERS, orders)
export const positionsCsv = (positions: readonly Position[]): string => csvOf(POSITIONS, positions)
