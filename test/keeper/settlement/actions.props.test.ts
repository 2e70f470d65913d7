/** Random queues of all kinds on the real contracts: what the laws accept is mined in order, what reverts is dropped, nothing else is lost. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { HourlyFunding } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { loadInputs } from '../../support/rows/batches.ts'
import { ActionFixture, RATE } from '../support/action-fixture.ts'
import { ChainFixture, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'

const KINDS = ['match', 'fund', 'fund', 'misfund', 'inherit', 'settle', 'crash'] as const
type Step = (typeof KINDS)[number]

class Run {
  readonly fixture: ChainFixture
  readonly actions: ActionFixture
  readonly #auction: Auction
  readonly #fences: { readonly auction: Fence; readonly settle: Fence }
  readonly #traders: readonly Trader[]
  /** By number in the queue. */
  readonly doomed = new Set<number>()
  #turn = 0

  private constructor(
    fixture: ChainFixture,
    actions: ActionFixture,
    fences: { readonly auction: Fence; readonly settle: Fence },
    traders: readonly Trader[],
  ) {
    this.fixture = fixture
    this.actions = actions
    this.#fences = fences
    this.#traders = traders
    this.#auction = fixture.auction()
  }

  static async open(fixture: ChainFixture): Promise<Run> {
    const actions = new ActionFixture(fixture)
    await actions.report(1000)
    const traders: Trader[] = []
    for (const name of ['alice', 'bob', 'carol', 'dave']) traders.push(await fixture.depositor(name))
    const fences = { auction: await fixture.lease('auction:m1'), settle: await fixture.lease('settle:m1') }
    return new Run(fixture, actions, fences, traders)
  }

  async take(step: Step): Promise<void> {
    const { actions } = this
    if (step === 'match') return this.#match()
    if (step === 'settle') return this.settle()
    if (step === 'crash') return this.#crash()
    if (step === 'fund') return this.#fund()
    const [alice] = this.#traders as [Trader]
    this.doomed.add(
      step === 'misfund'
        ? await actions.updateFunding(1000, (RATE * 1000n) as HourlyFunding)
        : await actions.inherit(alice, 1000),
    )
  }

  /**
   * Within the slope: the rates that follow each other within seconds differ by little. Without a new block two updates on a slow machine are as of the
   * same time, and the second rate may not differ at all.
   */
  async #fund(): Promise<void> {
    await this.fixture.chainSide.provider.send('evm_mine', [])
    await this.actions.updateFunding(1000, (RATE + BigInt(this.#turn++ % 2)) as HourlyFunding)
  }

  async #match(): Promise<void> {
    const [long, short] = this.#turn++ % 2 === 0 ? [1, 2] : [3, 2]
    const [by, against] = [this.#traders[long] as Trader, this.#traders[short] as Trader]
    await this.fixture.place({ by, side: 'LONG', steps: 20, limit: 1000 })
    await this.fixture.place({ by: against, side: 'SHORT', steps: 20, limit: 1000 })
    if ((await this.#auction.run()) !== null) return
    // On a slow machine a part in front is so old that the market waits for it.
    await this.settle()
    expect(await this.#auction.run()).to.be.a('number')
  }

  async #crash(): Promise<void> {
    const points = ['after-reserving', 'after-signing', 'after-broadcast']
    const point = points[this.#turn++ % points.length]
    const dying = this.fixture.settlement({
      killPoint: (reached) => {
        if (reached === point) throw new Error('crashed')
      },
    })
    await dying.start(this.#fences.settle)
    await dying.step(this.#fences.settle).catch(() => {})
    await this.fixture.follow()
  }

  async settle(): Promise<void> {
    const settlement = this.fixture.settlement()
    await settlement.start(this.#fences.settle)
    await settlement.settleAll(this.#fences.settle)
  }

  async check(): Promise<void> {
    const { fixture, doomed } = this
    const actions = await fixture.actions()
    for (const { queue_no, kind, status, failure } of actions) {
      const expected = doomed.has(queue_no) ? 'REVERTED' : 'MINED'
      expect(status, `${queue_no} ${kind}: ${failure}`).to.equal(expected)
    }
    const mined = actions.filter(({ status }) => status === 'MINED')
    expect(mined.map(({ action_id }) => action_id)).to.deep.equal(mined.map((_, at) => at + 1))
    expect((await fixture.rows('batch_voided')).length).to.equal(0)
    expect((await fixture.rows('action_dropped')).length).to.equal(doomed.size)
    const { fundingIndex } = await fixture.trading().lastReference()
    expect((await this.actions.funding()).index).to.equal(fundingIndex)
    await this.#checkIndexes()
    await expectConsistent(fixture)
    const nonces = new Set((await fixture.transactions()).map(({ nonce }) => nonce))
    expect([...nonces]).to.deep.equal([...nonces].map((_, at) => at))
  }

  /** Without a dropped update, every batch was matched on the index that the contract used for it. */
  async #checkIndexes(): Promise<void> {
    const { fixture, doomed } = this
    const events = await fixture.trading().queryFilter(fixture.trading().filters.BatchSettled())
    if (doomed.size > 0) return
    for (const { args } of events) {
      const inputs = await loadInputs(fixture.db, fixture.spec.marketId, Number(args.batchId))
      const emitted = BigInt.asIntN(128, BigInt(`0x${args.data.slice(2 + 128, 2 + 160)}`))
      expect(inputs?.fundingIndex, `batch ${args.batchId}`).to.equal(emitted)
    }
  }
}

describe('random queues of actions on the contracts', function () {
  this.timeout(120_000)
  const chain = useChain(perpetual)

  it('when batches and single actions are queued in any order with crashes, all but the invalid ones are mined in order', async () => {
    let saved = await saveChain(chain())
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...KINDS), { minLength: 6, maxLength: 14 }),
        async (steps) => {
          await restoreChain(chain(), saved)
          saved = await saveChain(chain())
          const run = await Run.open(await ChainFixture.openOn(chain()))
          try {
            for (const step of steps) await run.take(step)
            await run.settle()
            await run.check()
          } finally {
            await run.fixture.close()
          }
        },
      ),
      { numRuns: 5, endOnFailure: true },
    )
  })
})
