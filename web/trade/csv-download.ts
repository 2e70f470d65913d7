/** Saves a list of the account as a CSV file, with exact decimals. */
import { pages } from '../../client/queries.ts'
import type { PlacedOrder } from '../../client/responses.ts'
import { openOrders } from '../account/live-account.ts'
import { requireTrader, type Trader } from '../account/trader.ts'
import { counted } from '../base/numbers.ts'
import { attempt } from '../base/toasts.ts'
import { ordersCsv, positionsCsv } from './csv-rows.ts'

export type List = 'positions' | 'orders' | 'history' | 'fills' | 'funding' | 'transactions'

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }))
  const anchor = document.createElement('a')
  anchor.href = url
  anchor.download = name
  anchor.click()
  URL.revokeObjectURL(url)
}

/** One file of the exchange has at most as many rows. */
const MOST_ORDERS = 100_000

async function allOrders({ orders }: Trader): Promise<readonly PlacedOrder[]> {
  const found: PlacedOrder[] = []
  for await (const page of pages((cursor) => orders.page({ limit: 1000, ...(cursor && { cursor }) }))) {
    found.push(...page.orders)
    if (found.length >= MOST_ORDERS) break
  }
  return found.slice(0, MOST_ORDERS)
}

const READERS: Readonly<Record<List, (trader: Trader) => Promise<string>>> = {
  positions: async ({ account }) => positionsCsv(await account.positions()),
  orders: async () => ordersCsv(openOrders.value),
  history: async (trader) => ordersCsv(await allOrders(trader)),
  fills: ({ account }) => account.fillsCsv(),
  funding: ({ account }) => account.transactionsCsv({ type: 'funding_payment' }),
  transactions: ({ account }) => account.transactionsCsv(),
}

export async function download(list: List, name: string): Promise<void> {
  const file = `clearbatch-${list}.csv`
  const words = {
    id: `download-${list}`,
    doing: `${name}: reading all …`,
    done: (csv: string) => ({
      title: `${name}: saved ${file}`,
      text: counted(csv.trimEnd().split('\n').length - 1, 'row'),
    }),
    failed: `${name}: could not be read`,
  }
  const csv = await attempt(words, () => READERS[list](requireTrader()))
  if (csv !== null) save(file, csv)
}
