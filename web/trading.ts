/** Parts of a trader, which the page loads as one file after its first screen. */
import './account/dead-man.ts'
import { AccountScreen } from './account/screen.tsx'
import { forgetSessionKey, requireTrader } from './account/trader.ts'
import { PortfolioScreen } from './screens/portfolio.tsx'
import { download } from './trade/csv-download.ts'
import { OngoingTable } from './trade/ongoing-table.tsx'
import { moveOrder } from './trade/order-actions.ts'
import { Ticket } from './trade/ticket.tsx'

export const trading = {
  AccountScreen,
  OngoingTable,
  PortfolioScreen,
  Ticket,
  download,
  forgetSessionKey,
  moveOrder,
  requireTrader,
}
