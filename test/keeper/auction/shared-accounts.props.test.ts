/** Accounts that trade in several markets at once: their rows are locked only by the last statement of a turn. */
import { expect } from 'chai'
import fc from 'fast-check'
import type { KyselyPlugin } from 'kysely'
import { sql } from 'kysely'
import { describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { MarketId } from '../../../domain/units.ts'
import { type Auction, createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import type { AuctionStore } from '../../../keeper/auction/ports.ts'
import { createAuctionStore } from '../../../keeper/auction/store.ts'
import { createSwitchStore } from '../../../keeper/switches/store.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'
import { mineOldestPart } from '../support/mine-part.ts'

const MIDDLE = 1000
const MARKETS = 3
const specOf = (number: number): MarketSpec => ({
  ...perpetual,
  marketId: number as MarketId,
  symbol: `M${number}-PERP`,
  trader: `0x${String(number).repeat(40)}` as MarketSpec['trader'],
})

/** Stops a turn between two of its statements, as a crash does. */
class StatementLimit implements KyselyPlugin {
  left = Number.POSITIVE_INFINITY

  transformQuery: KyselyPlugin['transformQuery'] = ({ node }) => node

  transformResult: KyselyPlugin['transformResult'] = async ({ result }) => {
    if (--this.left < 0) throw new Crash()
    return result
  }
}

class Crash extends Error {}

interface SharedMarket {
  readonly fixture: MarketFixture
  readonly limit: StatementLimit
  readonly auction: Auction
  readonly fence: Fence
}

async function openMarket(
  fixture: MarketFixture,
  around: (store: AuctionStore) => AuctionStore = (store) => store,
): Promise<SharedMarket> {
  await fixture.report(MIDDLE)
  const limit = new StatementLimit()
  const store = around(createAuctionStore(fixture.db.withPlugin(limit), fixture.databaseTime))
  const memory = createMarketMemory({ ...RULES, kind: fixture.spec.kind })
  const auction = createAuction({ ...fixture.auctionPorts(), store }, fixture.spec, memory)
  return { fixture, limit, auction, fence: await fixture.lease(`auction:m${fixture.spec.marketId}`) }
}

/** Fails unless each account reserves exactly what its orders of all markets withhold, and has it. */
async function expectExact({ db }: MarketFixture): Promise<void> {
  const { rows } = await sql<{ free: bigint; reserved: bigint; orders: bigint }>`
    select a.free, a.reserved, coalesce((select sum(reserved + held) from orders where user_id = a.user_id), 0) as orders
    from accounts a
  `.execute(db)
  for (const { free, reserved, orders } of rows) {
    expect(reserved, 'the reservation is the sum over the orders').to.equal(orders)
    expect(reserved <= free, `${reserved} reserved of ${free}`).to.equal(true)
  }
}

interface Placing {
  readonly kind: 'place'
  readonly market: number
  readonly by: number
  readonly side: 'LONG' | 'SHORT'
  readonly steps: number
  readonly offset: number | null
}

type Step =
  | Placing
  | { readonly kind: 'turn'; readonly market: number; readonly statements: number | null }
  | { readonly kind: 'cancel'; readonly pick: number }
  | { readonly kind: 'mine'; readonly market: number }
  | { readonly kind: 'switch'; readonly market: number; readonly by: number }

const market = fc.nat(MARKETS - 1)
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      ...{ kind: fc.constant('place' as const), market, by: fc.nat(2) },
      side: fc.constantFrom('LONG' as const, 'SHORT' as const),
      steps: fc.integer({ min: 10, max: 60 }),
      offset: fc.option(fc.integer({ min: -6, max: 6 }), { freq: 3 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ kind: fc.constant('turn' as const), market },
      statements: fc.option(fc.integer({ min: 0, max: 25 }), { freq: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick: fc.nat(50) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('mine' as const), market }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('switch' as const), market, by: fc.nat(2) }) },
)

/** Steps of one round run at the same time; those of one kind and market one after the other, as one keeper runs them. */
const anyRounds = fc.array(fc.array(anyStep, { minLength: 2, maxLength: 8 }), { minLength: 6, maxLength: 14 })

class SharedRun {
  readonly markets: readonly SharedMarket[]
  readonly traders: readonly Trader[]
  readonly #switching: Fence
  readonly #placed: string[] = []
  batches = 0
  crashes = 0

  constructor(markets: readonly SharedMarket[], traders: readonly Trader[], switching: Fence) {
    this.markets = markets
    this.traders = traders
    this.#switching = switching
  }

  static async open(): Promise<SharedRun> {
    const first = await MarketFixture.open(specOf(1))
    const others = [await first.beside(specOf(2)), await first.beside(specOf(3))]
    const markets: SharedMarket[] = []
    for (const fixture of [first, ...others]) markets.push(await openMarket(fixture))
    const traders: Trader[] = []
    for (const name of ['maker', 'one', 'two']) traders.push(await first.trader(name, '8'))
    return new SharedRun(markets, traders, await first.lease('switches'))
  }

  get first(): MarketFixture {
    return (this.markets[0] as SharedMarket).fixture
  }

  async round(steps: readonly Step[]): Promise<void> {
    const lines = Map.groupBy(steps, (step) =>
      step.kind === 'turn' ? `turn ${step.market}` : step.kind === 'mine' ? 'mine' : JSON.stringify(step),
    )
    await Promise.all(
      [...lines.values()].map(async (line) => {
        for (const step of line) await this.#take(step)
      }),
    )
    await expectExact(this.first)
  }

  async #take(step: Step): Promise<void> {
    if (step.kind === 'cancel') {
      const order = this.#placed[step.pick % Math.max(1, this.#placed.length)]
      if (order !== undefined) await this.#marketOf(order).fixture.cancel(order)
      return
    }
    const { fixture } = this.markets[step.market] as SharedMarket
    if (step.kind === 'turn') return this.#turn(step.market, step.statements)
    if (step.kind === 'mine') return void (await mineOldestPart(fixture))
    const by = this.traders[step.by] as Trader
    if (step.kind === 'switch') {
      const fired = [{ account: by.account, firedAt: fixture.clock.now() }]
      await createSwitchStore(fixture.db).cancel(
        this.#switching,
        fixture.spec.marketId,
        fired,
        fixture.clock.now(),
      )
      return
    }
    const { side, steps, offset } = step
    const limit = offset === null ? {} : { limit: MIDDLE + offset }
    const orderId = await fixture.placeCovered({ by, side, steps, ...limit })
    if (orderId !== null) this.#placed.push(orderId)
  }

  #marketOf(orderId: string): SharedMarket {
    return this.markets[Number(orderId.split('-')[0]) - 1] as SharedMarket
  }

  async #turn(number: number, statements: number | null): Promise<void> {
    const { auction, fence, limit } = this.markets[number] as SharedMarket
    limit.left = statements ?? Number.POSITIVE_INFINITY
    try {
      if ((await auction.run(fence)) !== null) this.batches++
    } catch (err) {
      if (!(err instanceof Crash)) throw err
      this.crashes++
    } finally {
      limit.left = Number.POSITIVE_INFINITY
    }
  }
}

describe('accounts that trade in several markets', function () {
  this.timeout(120_000)

  it('when turns of all markets, placements, cancels and receipts run at once and turns stop between any two statements, it reserves exactly what orders withhold, overdraws no account, and no two transactions deadlock', async () => {
    const seen = { batches: 0, crashes: 0 }
    await fc.assert(
      fc.asyncProperty(anyRounds, async (rounds) => {
        const run = await SharedRun.open()
        try {
          for (const steps of rounds) await run.round(steps)
          await run.round([0, 1, 2].map((of) => ({ kind: 'turn', market: of, statements: null })))
        } finally {
          await run.first.close()
        }
        seen.batches += run.batches
        seen.crashes += run.crashes
      }),
      { numRuns: Number(process.env.PROPERTY_RUNS ?? 3), endOnFailure: true },
    )
    expect(seen.batches, 'some turns match').to.be.greaterThan(0)
    expect(seen.crashes, 'some turns stop between two statements').to.be.greaterThan(0)
  })

  /** Balances of an account, changed by a transaction that does not wait long for a lock. */
  const setFree = ({ db }: MarketFixture, { account }: Trader, free: ReturnType<typeof sql>) =>
    db.transaction().execute(async (tx) => {
      await sql`set local lock_timeout = '2s'`.execute(tx)
      await sql`update accounts set free = ${free} where user_id = ${account}`.execute(tx)
    })

  const fundsOf = ({ db }: MarketFixture, { account }: Trader) =>
    db.selectFrom('accounts').selectAll().where('user_id', '=', account).executeTakeFirstOrThrow()

  it('when another transaction changes an account after a turn has read it, it waits for no turn, and both changes are kept', async () => {
    const run = await ClosingMarket.openAlone()
    const { free } = await fundsOf(run.fixture, run.maker)
    run.beforeLast = () => setFree(run.fixture, run.maker, sql`free + 1`)
    await run.close()
    expect(run.decisions).to.equal(1)
    expect((await fundsOf(run.fixture, run.maker)).free).to.equal(free + 1n)
    await expectExact(run.fixture)
    await run.fixture.close()
  })

  it('when an account can no longer pay for what a turn reserves, it decides once more with the account locked, and the newest order ends', async () => {
    const run = await ClosingMarket.openAlone()
    run.beforeLast = () => setFree(run.fixture, run.maker, sql`reserved`)
    await run.close()
    expect(run.decisions).to.equal(2)
    expect(await run.reasonOfLater()).to.equal('INSUFFICIENT_MARGIN')
    await expectExact(run.fixture)
    await run.fixture.close()
  })

  it('when turns of three markets read an account at once that can pay for what one of them reserves, one keeps its order and the others end theirs', async () => {
    const first = await MarketFixture.open(specOf(1))
    const traders = [await first.trader('maker', '2'), await first.trader('taker')] as const
    const runs: ClosingMarket[] = []
    for (const fixture of [first, await first.beside(specOf(2)), await first.beside(specOf(3))])
      runs.push(await ClosingMarket.open(fixture, ...traders))
    await setFree(first, traders[0], sql`reserved + ${e18('0.3')}::numeric`)
    let reading = runs.length
    const { promise, resolve } = Promise.withResolvers<void>()
    for (const run of runs) {
      run.beforeLast = () => {
        if (--reading === 0) resolve()
        return promise
      }
    }
    await Promise.all(runs.map((run) => run.close()))
    const reasons = await Promise.all(runs.map((run) => run.reasonOfLater()))
    expect(reasons.toSorted()).to.deep.equal(['INSUFFICIENT_MARGIN', 'INSUFFICIENT_MARGIN', null])
    expect(runs.map(({ decisions }) => decisions).toSorted()).to.deep.equal([1, 2, 2])
    await expectExact(first)
    await first.close()
  })
})

/** A market in which the maker's long covers a sale; once another sale closes the long, that sale must reserve. */
class ClosingMarket {
  readonly fixture: MarketFixture
  readonly maker: Trader
  #market!: SharedMarket
  #later = ''
  decisions = 0
  /** Runs before the last statement of the next turn's first decision. */
  beforeLast: (() => Promise<void>) | null = null

  constructor(fixture: MarketFixture, maker: Trader) {
    this.fixture = fixture
    this.maker = maker
  }

  static async openAlone(): Promise<ClosingMarket> {
    const fixture = await MarketFixture.open(specOf(1))
    return ClosingMarket.open(fixture, await fixture.trader('maker', '2'), await fixture.trader('taker'))
  }

  static async open(fixture: MarketFixture, maker: Trader, taker: Trader): Promise<ClosingMarket> {
    const run = new ClosingMarket(fixture, maker)
    run.#market = await openMarket(fixture, (store) => ({
      ...store,
      transaction: (spec, fence, work) =>
        store.transaction(spec, fence, async (transaction) => {
          const done = await work(transaction)
          if (run.decisions++ === 0) await run.beforeLast?.()
          return done
        }),
    }))
    await fixture.place({ by: taker, side: 'SHORT', steps: 10, limit: MIDDLE })
    await fixture.place({ by: maker, side: 'LONG', steps: 10 })
    await run.#turn()
    while (await mineOldestPart(fixture));
    run.#later = await fixture.place({ by: maker, side: 'SHORT', steps: 10, limit: MIDDLE + 50 })
    await fixture.place({ by: maker, side: 'SHORT', steps: 10, limit: MIDDLE, reduceOnly: true })
    await fixture.place({ by: taker, side: 'LONG', steps: 10 })
    run.decisions = 0
    return run
  }

  async #turn(): Promise<void> {
    expect(await this.#market.auction.run(this.#market.fence), 'a batch').not.to.equal(null)
  }

  close(): Promise<void> {
    return this.#turn()
  }

  async reasonOfLater(): Promise<string | null> {
    return (await this.fixture.orderOf(this.#later)).statusReason
  }
}
