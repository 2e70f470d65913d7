/** What the liquidations of a market read and write. */
import type { Fence } from '../../db/fence.ts'
import type { MarketSnapshot } from '../../domain/auction/market-snapshot.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ActionOutcome } from '../../domain/risk/liquidation-outcome.ts'
import type { LiquidationPlan } from '../../domain/risk/liquidation-plan.ts'
import type { RunningLiquidation } from '../../domain/risk/running-liquidation.ts'
import type { Address, UserId } from '../../domain/units.ts'
import type { MarketTransaction } from '../auction/ports.ts'

/** A market inside a transaction that holds its shard's lock and a valid lease. */
export interface LiquidationTransaction extends MarketTransaction {
  /** The running liquidations of the accounts, by number. */
  running(accounts: Iterable<UserId>): Promise<readonly RunningLiquidation[]>
  /** What became of the actions with these numbers in the queue. */
  outcomes(queueNos: readonly number[]): Promise<ReadonlyMap<number, Exclude<ActionOutcome, null>>>
  addresses(accounts: Iterable<UserId>): Promise<ReadonlyMap<UserId, Address>>
  /** The reduce-only orders of each account that have not ended; accounts without any are left out. */
  reduceOnlyOrders(accounts: Iterable<UserId>): Promise<ReadonlyMap<UserId, number>>
  saveLiquidations(plan: LiquidationPlan): Promise<void>
}

export interface LiquidationStore {
  snapshot(spec: MarketSpec): Promise<MarketSnapshot>
  /** Runs `work` in one transaction, which commits what `work` saves. */
  transaction<T>(
    spec: MarketSpec,
    fence: Fence,
    work: (transaction: LiquidationTransaction) => Promise<T>,
  ): Promise<T>
}
