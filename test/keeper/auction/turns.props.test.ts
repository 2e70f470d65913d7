import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Culprit } from '../../../domain/settlement/void-batch.ts'
import { createVoids } from '../../../keeper/settlement/store.ts'
import { voidFrom } from '../../../keeper/settlement/void-batches.ts'
import { binary, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { type Auction, createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import {
  type addressOf,
  MarketFixture,
  RULES,
  SILENT_LOGGER,
  type Trader,
} from '../support/market-fixture.ts'
import { matchedFills } from '../support/matched-fills.ts'
import { mineOldestPart } from '../support/mine-part.ts'

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
  readonly fixture: MarketFixture
  readonly middle: number
  readonly traders: Trader[] = []
  auction!: Auction
  settling!: Fence
  placed: string[] = []
  fills = 0
  voided = 0

  constructor(fixture: MarketFixture, middle: number) {
    this.fixture = fixture
    this.middle = middle
  }

  /** Traders with so little that some orders must go when the position moves. */
  static async open(spec: MarketSpec, middle: number): Promise<Run> {
    const run = new Run(await MarketFixture.open(spec), middle)
    await run.fixture.report(middle)
    for (let at = 0; at < TRADERS; at++) run.traders.push(await run.fixture.trader(`trader ${at}`, '60'))
    run.settling = await run.fixture.lease('settle')
    run.auction = createAuction(
      run.fixture.turnPorts(),
      spec,
      createMarketMemory({ ...RULES, kind: spec.kind }),
    )
    return run
  }

  async take(step: Step): Promise<void> {
    const { fixture } = this
    switch (step.kind) {
      case 'place':
        return this.#place(step)
      case 'cancel': {
        const order = this.placed[step.pick % Math.max(1, this.placed.length)]
        if (order !== undefined) await fixture.cancel(order)
        return
      }
      case 'tick':
        if ((await this.auction.run()) !== null) this.fills++
        return
      case 'wait':
        fixture.clock.value += step.ms
        return
      case 'price':
        fixture.clock.value += 1
        return fixture.report(this.middle + step.offset)
      case 'mine':
        await mineOldestPart(fixture)
        return
      case 'fail':
        return this.#fail(step.culprit)
    }
  }

  async #place(step: Step & { kind: 'place' }): Promise<void> {
    const by = this.traders[step.by] as Trader
    const orderId = await this.fixture.place({
      by,
      side: step.side,
      steps: step.steps,
      leverage: step.leverage,
      reduceOnly: step.reduceOnly,
      ...(step.offset === null ? {} : { limit: this.middle + step.offset }),
      expiration: step.life === 0 ? 0 : Math.floor(this.fixture.clock.value / 1000) + step.life,
    })
    if (await this.#canPay(by)) this.placed.push(orderId)
    else await this.fixture.cancel(orderId)
  }

  async #canPay({ account }: Trader): Promise<boolean> {
    const row = await withMirror(this.fixture.db)
      .selectFrom('accounts')
      .selectAll()
      .where('user_id', '=', account)
      .executeTakeFirstOrThrow()
    return row.free >= row.reserved
  }

  /** The oldest unmined part fails for a reason that names an order, an account, or no party. */
  async #fail(choice: number): Promise<void> {
    const { fixture } = this
    const action = await fixture.db
      .selectFrom('actions')
      .selectAll()
      .where('status', 'in', ['QUEUED', 'SIGNED', 'SUBMITTED'])
      .orderBy('queue_no')
      .executeTakeFirst()
    if (action === undefined) return
    const fills = await matchedFills(fixture.db)
    const fill = fills.find(({ batchId, part }) => batchId === action.batch_id && part === action.part)
    const order = await fixture.db
      .selectFrom('orders')
      .select(['maker', 'salt'])
      .where('order_id', '=', fill?.orderId as string)
      .executeTakeFirstOrThrow()
    const maker = order.maker as ReturnType<typeof addressOf>
    const culprits: Culprit[] = [
      { kind: 'order', maker, salt: BigInt(order.salt), error: 'OrderDead' },
      { kind: 'account', maker, error: 'MarginInsufficient' },
      { kind: 'unnamed', error: 'HeaderInvalid' },
      { kind: 'late', error: 'late' },
    ]
    const culprit = culprits[choice] as Culprit
    const ports = {
      voids: createVoids({ db: fixture.db, engine: fixture.engine }),
      clock: fixture.clock,
      logger: SILENT_LOGGER,
    }
    await voidFrom(ports, fixture.spec, this.settling, {
      queueNo: action.queue_no,
      cause: culprit,
      reverted: null,
    })
    this.voided++
  }
}

describe('when placements, cancels, auctions, receipts and failures come in any order', function () {
  this.timeout(300_000)

  for (const [spec, middle] of [
    [perpetual, 1000],
    [binary, 500],
  ] as const) {
    it(`it keeps reservations, positions, fills and the book of a ${spec.kind} market consistent`, async () => {
      const seen = { batches: 0, voided: 0 }
      await fc.assert(
        fc.asyncProperty(fc.array(anyStep, { minLength: 15, maxLength: 45 }), async (steps) => {
          const run = await Run.open(spec, middle)
          try {
            for (const step of steps) {
              await run.take(step)
              await expectConsistent(run.fixture)
            }
            await expectSameBook(run.fixture)
            await expectSameReadModel(run.fixture)
            while (await mineOldestPart(run.fixture)) await expectConsistent(run.fixture)
            seen.batches += run.fills
            seen.voided += run.voided
          } finally {
            await run.fixture.close()
          }
        }),
        { numRuns: Number(process.env.PROPERTY_RUNS ?? 8), endOnFailure: true },
      )
      expect(seen.batches, 'some runs match').to.be.greaterThan(0)
    })
  }
})
