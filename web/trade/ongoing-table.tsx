/** Tables that need the client of a signed-in account, loaded with the file of the ticket. */
import { OrderHistoryTable } from './order-history-table.tsx'
import { OrderTable } from './order-table.tsx'
import { PositionTable } from './position-table.tsx'

const TABLES = { positions: PositionTable, orders: OrderTable, history: OrderHistoryTable } as const

export function OngoingTable({ tab }: { tab: keyof typeof TABLES }) {
  const Shown = TABLES[tab]
  return <Shown />
}
