/** The recorded mix as commands to the engine, sent at their times whatever happens to earlier commands. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { OrderHash } from '../../domain/units.ts'
import type { Engine } from '../../keeper/engine/link/engine.ts'
import type { BenchMarket } from '../intake/orders.ts'
import { type MixTerms, planMix } from '../mix/flow.ts'
import { cancelOf, ordersOf, Placements, refusalOf } from './placements.ts'

const BUDGET_MS = 10_000

export interface MixOutcome {
  readonly sent: number
  readonly refused: ReadonlyMap<string, number>
  /** From the intended time to the answer, of accepted placements and cancels. */
  readonly latencies: readonly number[]
}

export async function sendMix(
  api: Engine,
  markets: readonly BenchMarket[],
  terms: MixTerms,
  firstSalt?: number,
): Promise<MixOutcome> {
  const { orders, cancels } = planMix(markets, terms)
  const placements = new Placements(firstSalt)
  const hashes: OrderHash[] = []
  const refused = new Map<string, number>()
  const latencies: number[] = []
  const due = [
    ...orders.map((order, index) => ({ at: order.at, index, isCancel: false })),
    ...cancels.map(({ at, order }) => ({ at, index: order, isCancel: true })),
  ].sort((a, b) => a.at - b.at)
  const open: Promise<void>[] = []
  const start = performance.now()
  for (const { at, index, isCancel } of due) {
    const early = start + at - performance.now()
    if (early > 1) await sleep(early)
    const planned = orders[index] as (typeof orders)[number]
    const userId = 1 + planned.account
    const item = isCancel ? cancelOf(hashes[index] as OrderHash) : placementOf(index)
    open.push(
      api.submit<'orders'>(ordersOf(userId, [item]), BUDGET_MS).then((reply) => {
        const refusal = refusalOf(reply)
        if (refusal === null) latencies.push(performance.now() - start - at)
        else refused.set(refusal, (refused.get(refusal) ?? 0) + 1)
      }),
    )
  }
  await Promise.all(open)
  return { sent: due.length, refused, latencies }

  function placementOf(index: number) {
    const { market, account, side, type, price, trigger, steps, leverage } = orders[
      index
    ] as (typeof orders)[number]
    const { marketId } = (markets[market] as BenchMarket).spec
    const item = placements.item({
      marketId,
      userId: 1 + account,
      side,
      type,
      price,
      trigger,
      steps,
      leverage,
    })
    hashes[index] = item.order.hash
    return item
  }
}
