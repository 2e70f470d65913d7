/** The positions or the open orders of the account, loaded with the file of the ticket. */
import { OrderTable } from './order-table.tsx'
import { PositionTable } from './position-table.tsx'

export const OngoingTable = ({ tab }: { tab: 'positions' | 'orders' }) =>
  tab === 'orders' ? <OrderTable /> : <PositionTable />
