/** Sets a market's funding rate on a running exchange, as the keeper's job does, but at the bounds of the contract. */

import type { Db } from '../../../db/client.ts'
import type { Fence } from '../../../db/fence.ts'
import { createLeases } from '../../../db/leases.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { fundingBounds } from '../../../domain/prices/funding.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { HourlyFunding, Millis, Price } from '../../../domain/units.ts'
import { createActionQueue } from '../../../keeper/actions/store.ts'
import type { Stack } from '../../../stack/stack.ts'
import { waitFor } from '../../support/patience.ts'

const LEASE_MS = 3_600_000
const HOUR_MS = 3_600_000

/** Owns the lease under which it queues the updates of one market. */
export class FundingUpdates {
  readonly #stack: Stack
  readonly #spec: MarketSpec
  readonly #fence: Fence

  private constructor(stack: Stack, spec: MarketSpec, fence: Fence) {
    this.#stack = stack
    this.#spec = spec
    this.#fence = fence
  }

  static async open(stack: Stack, marketId: number): Promise<FundingUpdates> {
    const spec = stack.specs.find((one) => one.marketId === marketId)
    if (spec === undefined) throw new RangeError(`the stack has no market ${marketId}`)
    const fence = await createLeases(stack.db, 'funding test', LEASE_MS).acquire(`funding test:m${marketId}`)
    if (fence === null) throw new Error(`the lease of the funding test in market ${marketId} is taken`)
    return new FundingUpdates(stack, spec, fence)
  }

  /** Queues an update in the direction and resolves once it is mined. The rate is halfway from the middle of its bounds to one of them. */
  async set(direction: 'up' | 'down'): Promise<void> {
    const queueNo = await waitFor(
      () => this.#enqueue(direction),
      (queued) => queued !== null,
    )
    const action = () =>
      this.#stack.db
        .selectFrom('actions')
        .select(['status', 'failure'])
        .where('market_id', '=', this.#spec.marketId)
        .where('queue_no', '=', queueNo)
        .executeTakeFirstOrThrow()
    const isDone = ({ status }: { status: string }) => ['MINED', 'REVERTED', 'VOIDED'].includes(status)
    const { status, failure } = await waitFor(action, isDone, { budgetMs: 60_000 })
    if (status !== 'MINED') throw new Error(`the funding update is ${status}: ${JSON.stringify(failure)}`)
  }

  async #enqueue(direction: 'up' | 'down'): Promise<number | null> {
    const { db, provider } = this.#stack
    const spec = this.#spec
    const report = await latestReport(db, spec.marketId)
    const headTime = (((await provider.getBlock('latest'))?.timestamp ?? 0) * 1000) as Millis
    const verdict = await createActionQueue(db).enqueue(spec.marketId, this.#fence, headTime, (end) => {
      const { asOf, funding } = end
      const { highest, lowest } = fundingBounds(spec, funding.running, report.price, asOf)
      const [far, near] = direction === 'up' ? [highest, lowest] : [lowest, highest]
      const rate = ((3n * far + near) / 4n) as HourlyFunding
      const validUntil = (asOf + HOUR_MS) as Millis
      return { kind: 'update_funding', asOf, rate, validUntil, report, session: null }
    })
    return verdict.ok ? verdict.value : null
  }
}

async function latestReport(db: Db, marketId: number): Promise<OracleReport> {
  const { price, observed_at, signatures } = await db
    .selectFrom('oracle_reports')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('feed', '=', 'index')
    .executeTakeFirstOrThrow()
  return {
    price: price as Price,
    observedAt: observed_at as Millis,
    signatures: signatures as OracleReport['signatures'],
  }
}
