/** What the account has open: its positions or its orders. Both come with the ticket's file. */
import { OrderTable } from './order-table.tsx'
import { PositionTable } from './position-table.tsx'

export const OngoingTable = ({ tab }: { tab: 'positions' | 'orders' }) =>
  tab === 'orders' ? <OrderTable /> : <PositionTable />
