import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Culprit } from '../../../domain/settlement/void-batch.ts'
import { type Auction, createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import type { StoredTransaction } from '../../../keeper/relayer/ports.ts'
import { voidFrom } from '../../../keeper/settlement/void-batches.ts'
import { createVoidStore } from '../../../keeper/settlement/void-store.ts'
import { binary, perpetual } from '../../support/markets.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import { mineOne } from '../support/mine.ts'
import { type addressOf, quiet, RULES, type Trader, World } from '../support/world.ts'

type Step =
  | {
      kind: 'place'
      by: number
      side: 'LONG' | 'SHORT'
      steps: number
      offset: number | null
      leverage: number
      reduceOnly: boolean
      life: number
    }
  | { kind: 'cancel'; pick: number }
  | { kind: 'tick' }
  | { kind: 'wait'; ms: number }
  | { kind: 'price'; offset: number }
  | { kind: 'mine' }
  | { kind: 'fail'; culprit: number }

const TRADERS = 4

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('place' as const),
      by: fc.nat(TRADERS - 1),
      side: fc.constantFrom('LONG' as const, 'SHORT' as const),
      steps: fc.integer({ min: 1, max: 40 }),
      offset: fc.option(fc.integer({ min: -8, max: 8 }), { freq: 5 }),
      leverage: fc.integer({ min: 1, max: 5 }),
      reduceOnly: fc.constantFrom(false, false, false, true),
      life: fc.constantFrom(0, 0, 0, 3),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick: fc.nat(50) }) },
  { weight: 6, arbitrary: fc.constant({ kind: 'tick' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 1500 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('price' as const), offset: fc.integer({ min: -5, max: 5 }) }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'mine' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const), culprit: fc.nat(3) }) },
)

class Run {
  readonly world: World
  readonly middle: number
  readonly traders: Trader[] = []
  auction!: Auction
  auctioning!: Fence
  settling!: Fence
  placed: string[] = []
  fills = 0
  voided = 0

  constructor(world: World, middle: number) {
    this.world = world
    this.middle = middle
  }

  /** Traders with so little that some orders must go when the position moves. */
  static async open(spec: MarketSpec, middle: number): Promise<Run> {
    const run = new Run(await World.open(spec), middle)
    await run.world.report(middle)
    for (let at = 0; at < TRADERS; at++) run.traders.push(await run.world.trader(`trader ${at}`, '60'))
    run.auctioning = await run.world.lease('auction')
    run.settling = await run.world.lease('settle')
    run.auction = createAuction(
      run.world.auctionPorts(),
      spec,
      createMarketMemory({ ...RULES, kind: spec.kind }),
    )
    return run
  }

  async take(step: Step): Promise<void> {
    const { world } = this
    switch (step.kind) {
      case 'place':
        return this.#place(step)
      case 'cancel': {
        const order = this.placed[step.pick % Math.max(1, this.placed.length)]
        if (order !== undefined) await world.cancel(order)
        return
      }
      case 'tick':
        if ((await this.auction.run(this.auctioning)) !== null) this.fills++
        return
      case 'wait':
        world.clock.value += step.ms
        return
      case 'price':
        world.clock.value += 1
        return world.report(this.middle + step.offset)
      case 'mine':
        await mineOne(world)
        return
      case 'fail':
        return this.#fail(step.culprit)
    }
  }

  async #place(step: Step & { kind: 'place' }): Promise<void> {
    const by = this.traders[step.by] as Trader
    const orderId = await this.world.place({
      by,
      side: step.side,
      steps: step.steps,
      leverage: step.leverage,
      reduceOnly: step.reduceOnly,
      ...(step.offset === null ? {} : { limit: this.middle + step.offset }),
      expiration: step.life === 0 ? 0 : Math.floor(this.world.clock.value / 1000) + step.life,
    })
    if (await this.#canPay(by)) this.placed.push(orderId)
    else await this.world.cancel(orderId)
  }

  async #canPay({ account }: Trader): Promise<boolean> {
    const row = await this.world.db
      .selectFrom('accounts')
      .selectAll()
      .where('user_id', '=', account)
      .executeTakeFirstOrThrow()
    return row.free >= row.reserved
  }

  /** The oldest unmined part fails for a reason that names an order, an account, or nobody. */
  async #fail(choice: number): Promise<void> {
    const { world } = this
    const action = await world.db
      .selectFrom('actions')
      .selectAll()
      .where('status', 'in', ['QUEUED', 'SIGNED', 'SUBMITTED'])
      .orderBy('queue_no')
      .executeTakeFirst()
    if (action === undefined) return
    const order = await world.db
      .selectFrom('fills')
      .innerJoin('orders', 'orders.order_id', 'fills.order_id')
      .select(['orders.maker', 'orders.salt'])
      .where('batch_id', '=', action.batch_id)
      .where('part', '=', action.part)
      .limit(1)
      .executeTakeFirstOrThrow()
    const maker = order.maker as ReturnType<typeof addressOf>
    const culprits: Culprit[] = [
      { kind: 'order', maker, salt: BigInt(order.salt), error: 'OrderDead' },
      { kind: 'account', maker, error: 'MarginInsufficient' },
      { kind: 'unnamed', error: 'HeaderInvalid' },
      { kind: 'late', error: 'late' },
    ]
    const culprit = culprits[choice] as Culprit
    const chain = { findCulprit: async () => culprit }
    const reverted = { hash: '0x', raw: '0x', block: 1 } as unknown as StoredTransaction
    const ports = { voids: createVoidStore(world.db), chain, clock: world.clock, logger: quiet }
    await voidFrom(ports, world.spec, this.settling, { queueNo: action.queue_no, reverted })
    this.voided++
  }
}

describe('any sequence of placements, cancels, turns, receipts and failures', function () {
  this.timeout(300_000)

  for (const [spec, middle] of [
    [perpetual, 1000],
    [binary, 500],
  ] as const) {
    it(`keeps reservations, positions, fills and the book consistent in a ${spec.kind} market`, async () => {
      const seen = { batches: 0, voided: 0 }
      await fc.assert(
        fc.asyncProperty(fc.array(anyStep, { minLength: 15, maxLength: 45 }), async (steps) => {
          const run = await Run.open(spec, middle)
          try {
            for (const step of steps) {
              await run.take(step)
              await expectConsistent(run.world)
            }
            await expectSameBook(run.world)
            await expectSameReadModel(run.world)
            while (await mineOne(run.world)) await expectConsistent(run.world)
            seen.batches += run.fills
            seen.voided += run.voided
          } finally {
            await run.world.close()
          }
        }),
        { numRuns: Number(process.env.PROPERTY_RUNS ?? 8), endOnFailure: true },
      )
      expect(seen.batches, 'some runs match').to.be.greaterThan(0)
    })
  }
})
