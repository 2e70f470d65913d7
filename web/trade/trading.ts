/** Parts of the trade screen that an account needs, loaded together after the first paint. */
export { moveOrder } from './order-actions.ts'
export { OrderTable } from './order-table.tsx'
export { PositionTable } from './position-table.tsx'
export { Ticket } from './ticket.tsx'
