/** Files that the page writes for the visitor. */
import type { Account } from '../../client/account.ts'
import { pages } from '../../client/queries.ts'
import type { Fill } from '../../client/responses.ts'
import { fromE18 } from '../base/numbers.ts'

export function downloadText(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }))
  const anchor = document.createElement('a')
  anchor.href = url
  anchor.download = name
  anchor.click()
  URL.revokeObjectURL(url)
}

const COLUMNS = [
  'created_at',
  'fill_id',
  'order_id',
  'symbol',
  'side',
  'price',
  'quantity',
  'fee',
  'realized_pnl',
  'status',
  'batch_id',
  'tx_hash',
] as const

const decimal = (raw: string | null): string => (raw === null ? '' : fromE18(BigInt(raw)))

function rowOf(fill: Fill): string {
  const values: Readonly<Record<(typeof COLUMNS)[number], string>> = {
    created_at: fill.created_at,
    fill_id: fill.fill_id,
    order_id: fill.order_id,
    symbol: fill.symbol,
    side: fill.side,
    price: decimal(fill.price_e18_raw),
    quantity: decimal(fill.quantity_e18_raw),
    fee: decimal(fill.fee_e18_raw),
    realized_pnl: decimal(fill.realized_pnl_e18_raw),
    status: fill.status,
    batch_id: String(fill.batch_id),
    tx_hash: fill.tx_hash ?? '',
  }
  return COLUMNS.map((column) => values[column]).join(',')
}

/** All fills, newest first, with exact decimals. */
export async function fillsCsv(account: Account): Promise<string> {
  const rows: string[] = [COLUMNS.join(',')]
  const fetchPage = (cursor: string | undefined) =>
    account.fillPage({ limit: 1000, ...(cursor !== undefined && { cursor }) })
  for await (const { fills } of pages(fetchPage)) rows.push(...fills.map(rowOf))
  return `${rows.join('\r\n')}\r\n`
}
