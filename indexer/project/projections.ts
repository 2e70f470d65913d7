/** All projections, in the order in which they lock rows that several shards write. */
import { orders } from './orders/projection.ts'
import type { Projection } from './projection.ts'
import { adjustments } from './tables/adjustment-attempts.ts'
import { balances } from './tables/balances.ts'
import { batches } from './tables/batches.ts'
import { cashFlows } from './tables/cash-flows.ts'
import { fundingRates } from './tables/funding-rates.ts'
import { liquidations } from './tables/liquidations.ts'
import { risk } from './tables/market-risk.ts'
import { markets } from './tables/markets.ts'
import { positionHistory } from './tables/position-states.ts'
import { priceCandles } from './tables/price-candles.ts'
import { users } from './tables/users.ts'
import { withdrawals } from './tables/withdrawal-events.ts'
import { transactions } from './transactions/projection.ts'

export const PROJECTIONS: readonly Projection[] = [
  ...[users, markets, batches, fundingRates, priceCandles, risk, liquidations, adjustments],
  ...[balances, cashFlows, orders, transactions, withdrawals, positionHistory],
]
