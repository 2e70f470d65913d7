/**
 * Adjustments under crashes of the keeper, lost transactions, forks, expiry, foreign nonces and changes of the lease in any order: nothing
 * is reserved but by attempts in flight, every attempt ends, and what has moved is what the contracts have moved. `ADJUSTMENT_RUNS` plays
 * more runs, and `ADJUSTMENT_SEED` with the `ADJUSTMENT_PATH` of a failure repeats one.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { passTime, replaceBlocks } from '../../support/chain-faults.ts'
import { perpetual } from '../../support/markets.ts'
import {
  type AdjustmentKeeper,
  AdjustmentRun,
  changeLeverage,
  changeMargin,
} from '../support/adjustment-run.ts'
import { adjustKey, foreignTransaction, useChain } from '../support/chain-fixture.ts'
import type { Trader } from '../support/market-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'
import { openTrading } from '../support/trading.ts'

const RUNS = Number(process.env.ADJUSTMENT_RUNS ?? 2)
const SEED = Number(process.env.ADJUSTMENT_SEED ?? 3)
const PATH = process.env.ADJUSTMENT_PATH

const POINTS = [
  ...(['after-adjustment-reserved', 'after-adjustment-signed', 'after-adjustment-submitted'] as const),
] as const

const weighted = <Value>(weight: number, arbitrary: fc.Arbitrary<Value>) => ({ weight, arbitrary })
const plain = <const Kind extends string>(kind: Kind) => fc.constant({ kind } as const)

const anyStep = fc.oneof(
  weighted(
    5,
    fc.record({
      kind: fc.constant('accept' as const),
      who: fc.constantFrom('alice' as const, 'bob' as const),
      what: fc.constantFrom('add' as const, 'remove' as const, 'leverage' as const, 'forged' as const),
      amount: fc.integer({ min: 1, max: 9 }),
      /** Seconds until the deadline. */
      life: fc.constantFrom(3, 3600),
    }),
  ),
  weighted(6, plain('step')),
  weighted(5, plain('follow')),
  weighted(2, fc.record({ kind: fc.constant('crash' as const), point: fc.constantFrom(...POINTS) })),
  weighted(2, fc.record({ kind: fc.constant('network' as const), isLosing: fc.boolean() })),
  weighted(2, fc.record({ kind: fc.constant('time' as const), seconds: fc.constantFrom(2, 15, 60) })),
  weighted(2, plain('expire')),
  weighted(1, plain('foreign')),
  weighted(1, fc.record({ kind: fc.constant('fork' as const), depth: fc.integer({ min: 1, max: 4 }) })),
)
type Step = typeof anyStep extends fc.Arbitrary<infer Value> ? Value : never

const isInFlight = (status: string): boolean => ['PREPARED', 'SIGNED', 'SUBMITTED'].includes(status)

class Interleaving {
  readonly run: AdjustmentRun
  readonly counts: Record<string, number>
  #keeper!: AdjustmentKeeper
  #owners = 0
  #isLosing = false
  #aheadMs = 0
  readonly #firstBlock: number
  readonly #margins: ReadonlyMap<Trader, bigint>

  private constructor(
    run: AdjustmentRun,
    counts: Record<string, number>,
    first: number,
    margins: Map<Trader, bigint>,
  ) {
    this.run = run
    this.counts = counts
    this.#firstBlock = first
    this.#margins = margins
  }

  static async open(run: AdjustmentRun, counts: Record<string, number>): Promise<Interleaving> {
    const margins = new Map<Trader, bigint>()
    for (const trader of [run.alice, run.bob]) margins.set(trader, await run.marginOf(trader))
    const first = await run.fixture.chainSide.provider.getBlockNumber()
    const interleaving = new Interleaving(run, counts, first, margins)
    await interleaving.#start()
    return interleaving
  }

  /** Another process acquires the lease; it remembers nothing. */
  async #start(killAt: string | null = null): Promise<void> {
    const killPoint = (point: string) => {
      if (point === killAt) throw new Error(`killed at ${point}`)
    }
    const fence = await this.run.acquire(`keeper ${++this.#owners}`)
    this.#keeper = await this.run.keeper(fence, {
      killPoint,
      wrap: (node) => ({
        ...node,
        send: (raw) => (this.#isLosing ? Promise.resolve({ kind: 'sent' }) : node.send(raw)),
      }),
    })
  }

  async take(step: Step): Promise<void> {
    const { run } = this
    const { provider } = run.fixture.chainSide
    switch (step.kind) {
      case 'accept':
        return this.#accept(step)
      case 'step':
        await run.fixture.report(1000)
        return this.#keeper.step()
      case 'follow':
        return run.fixture.follow()
      case 'crash':
        await this.#start(step.point)
        await run.fixture.report(1000)
        await this.#keeper.step()
        return this.#start()
      case 'network':
        this.#isLosing = step.isLosing
        return
      case 'time':
        return this.#pass(step.seconds)
      case 'expire':
        return run.expiry()()
      case 'foreign':
        return foreignTransaction(
          run.fixture.chainSide,
          await provider.getTransactionCount(run.lane.relayer),
          adjustKey,
        )
      case 'fork': {
        const depth = Math.min(step.depth, (await provider.getBlockNumber()) - this.#firstBlock)
        if (depth > 0) await replaceBlocks(provider, depth, [], this.#aheadMs)
      }
    }
  }

  async #pass(seconds: number): Promise<void> {
    await passTime(this.run.fixture.chainSide, seconds * 1000)
    this.run.fixture.clock.value += seconds * 1000
    this.#aheadMs += seconds * 1000
  }

  /** The api accepts one attempt per account at a time. */
  async #accept({ who, what, amount, life }: Extract<Step, { kind: 'accept' }>): Promise<void> {
    const { run } = this
    const trader = run[who]
    const own = (await run.attempts()).filter(({ user_id }) => user_id === trader.account)
    if (own.some(({ status }) => isInFlight(status))) return
    const change = what === 'remove' ? `-${amount}` : `${amount}`
    const adjustment = what === 'leverage' ? changeLeverage(1 + amount) : changeMargin(change)
    const signer = what === 'forged' ? (who === 'alice' ? run.bob : run.alice) : trader
    await run.accept(trader, adjustment, { signer, life })
  }

  /** Holds between any two steps. */
  async expectReserved(): Promise<void> {
    const attempts = await this.run.attempts()
    for (const { adjustment_id, status, hold, held } of attempts)
      expect(held, `${adjustment_id} ${status}`).to.equal(isInFlight(status) ? hold : 0n)
    for (const trader of [this.run.alice, this.run.bob]) {
      const { reserved } = await this.run.fixture.account(trader)
      const held = attempts.filter(({ user_id }) => user_id === trader.account).map((one) => one.held)
      expect(reserved).to.equal(held.reduce((sum, one) => sum + one, 0n))
    }
  }

  /** Without further faults every attempt ends, and the contracts have moved what the committed ones state. */
  async finish(): Promise<void> {
    const { run } = this
    this.#isLosing = false
    await this.#start()
    await this.#pass(15)
    await run.settle(this.#keeper, 20_000)
    const attempts = await run.attempts()
    for (const [trader, before] of this.#margins) {
      const own = attempts.filter(({ user_id }) => user_id === trader.account)
      const moved = own.map((one) => one.moved ?? 0n).reduce((sum, one) => sum + one, 0n)
      expect((await run.marginOf(trader)) - before, `moved of ${trader.account}`).to.equal(moved)
      for (const { status, moved: of } of own) expect(of === null).to.equal(status !== 'COMMITTED')
    }
    for (const { status } of attempts) this.counts[status] = (this.counts[status] ?? 0) + 1
    // The lane works, and none of its nonces is missing.
    const id = await run.accept(run.alice, changeMargin('1'))
    await run.settle(this.#keeper, 20_000)
    expect(await run.statusOf(id)).to.equal('COMMITTED')
  }
}

describe('adjustments under faults', function () {
  this.timeout(Number(process.env.MODEL_TIMEOUT ?? 120_000))
  const chain = useChain(perpetual)

  it('when faults come in any order, every attempt ends, and reservations and margins are exact', async () => {
    const steps = fc.array(anyStep, { minLength: 20, maxLength: 40, size: 'max' })
    const counts: Record<string, number> = {}
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const saved = await saveChain(chain())
        const run = await AdjustmentRun.on(await openTrading(chain()))
        try {
          const interleaving = await Interleaving.open(run, counts)
          for (const step of taken) {
            await interleaving.take(step)
            await interleaving.expectReserved()
          }
          await interleaving.finish()
        } finally {
          await run.close()
          await restoreChain(chain(), saved)
        }
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true, ...(PATH !== undefined && { path: PATH }) },
    )
    if (process.env.MODEL_VERBOSE) console.log(counts)
    expect(Object.keys(counts)).to.include.members(['COMMITTED', 'ABORTED'])
  })
})
