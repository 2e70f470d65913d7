/** Sets a market's funding rate on a running exchange, as the keeper's job does, but at the bounds of the contract. */

import type { Db } from '../../../db/client.ts'
import type { SingleAction } from '../../../domain/actions/action.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { fundingBounds } from '../../../domain/prices/funding.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { HourlyFunding, Millis, Price } from '../../../domain/units.ts'
import type { Stack } from '../../../stack/stack.ts'
import type { QueueEnd } from '../../support/enqueue.ts'
import { waitFor } from '../../support/patience.ts'
import { enqueueAsOwner } from './test-owner.ts'

const HOUR_MS = 3_600_000

export class FundingUpdates {
  readonly #stack: Stack
  readonly #spec: MarketSpec

  constructor(stack: Stack, marketId: number) {
    const spec = stack.specs.find((one) => one.marketId === marketId)
    if (spec === undefined) throw new RangeError(`the stack has no market ${marketId}`)
    this.#stack = stack
    this.#spec = spec
  }

  /** Queues an update in the direction and resolves once it is mined. The rate is halfway from the middle of its bounds to a bound. */
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
    const spec = this.#spec
    const { marketId } = spec
    const report = await latestReport(this.#stack.db, marketId)
    const now = Date.now() as Millis
    const build = ({ asOf, funding }: QueueEnd): SingleAction => {
      const { highest, lowest } = fundingBounds(spec, funding.running, report.price, asOf)
      const [far, near] = direction === 'up' ? [highest, lowest] : [lowest, highest]
      const rate = ((3n * far + near) / 4n) as HourlyFunding
      const validUntil = (asOf + HOUR_MS) as Millis
      return { kind: 'update_funding', asOf, rate, validUntil, report, session: null }
    }
    const verdict = await enqueueAsOwner(this.#stack, { marketId, now, build })
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
