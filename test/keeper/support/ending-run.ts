/** The end of the market of a fault run: it closes, is finalized under faults of chain, keys, process and clock, and pays its accounts out. */
import { expect } from 'chai'
import type { NonceManager } from 'ethers'
import type { Address } from '../../../domain/units.ts'
import { MarketEnding } from '../../support/market-ending.ts'
import { price } from '../../support/markets.ts'
import { freeInMirror, withMirror } from '../../support/mirror.ts'
import type { Fault } from './any-fault.ts'
import type { FaultRun } from './fault-run.ts'
import { expectConsistent, expectSameReadModel } from './invariants.ts'

/** Below it dave's long, opened at 100 with the highest leverage, has a deficit. */
const FINAL_PRICE = price('94')

const PENDING: readonly string[] = ['QUEUED', 'SIGNED', 'SUBMITTED']

/** Finalizations of one run: a fault may end any but the last. */
const MOST_ATTEMPTS = 6

/** More than rounding leaves in a pool that has paid everyone out. */
const DUST = 1_000_000n

export class EndingRun {
  readonly #run: FaultRun
  readonly #ending: MarketEnding

  constructor(run: FaultRun) {
    this.#run = run
    const { chainSide, spec, signFeed } = run.fixture
    this.#ending = new MarketEnding({
      time: run.time,
      ...{ provider: chainSide.provider, spec, bank: chainSide.shared.marginBank },
      admin: (chainSide.admin as NonceManager).signer,
      sign: (feed, price, at) => ({
        price,
        observedAt: at,
        signatures: signFeed(feed, price, at) as `0x${string}`,
      }),
    })
  }

  /** Everything of the run has settled before. `depth`: of the forks that take back the finalization, and then some of the payouts. */
  async play(faults: readonly Fault[], depth: number): Promise<void> {
    const { fixture, traders } = this.#run
    await this.#run.openDave('LONG')
    await fixture.place({ by: traders.alice, side: 'LONG', steps: 10, limit: 990 })
    await fixture.place({ by: traders.dave, side: 'SHORT', steps: 10, limit: 1040, reduceOnly: true })
    await this.#run.settleAll()
    const orders = await fixture.orders()
    await this.#pass(() => this.#ending.close())
    const report = await this.#ending.report(FINAL_PRICE)
    await this.#run.actions.finalize(report)
    await this.#run.settleAll()
    expect((await fixture.actions()).at(-1)?.failure, 'within the dispute window').to.match(
      /^FinalizeEarly\(/,
    )
    await this.#pass(() => this.#ending.passDisputeWindow())
    await this.#run.keepBlocks()

    const finalize = () => this.#run.actions.finalize(report)
    await finalize()
    for (const fault of faults) {
      await this.#run.take(fault)
      if (!(await this.#isOver())) await finalize()
    }
    await this.#untilEnded(finalize)
    await this.#run.take({ kind: 'fork', depth, isForeign: false })
    await this.#untilEnded(finalize)
    expect(await fixture.orders()).to.deep.equal(orders)
    await this.#expectEnded(finalize)
    await this.#payOut(depth)
  }

  /** Clocks and node go ahead by what `work` lets pass. */
  async #pass(work: () => Promise<void>): Promise<void> {
    const { fixture, time } = this.#run
    const before = time.aheadMs
    await work()
    fixture.clock.value += time.aheadMs - before
  }

  /** The market has ended, or its end is queued. */
  async #isOver(): Promise<boolean> {
    const { fixture } = this.#run
    const isPending = (await fixture.actions()).some(({ status }) => PENDING.includes(status))
    return isPending || (await fixture.mode()) === 'settled'
  }

  async #untilEnded(finalize: () => Promise<number>): Promise<void> {
    const { fixture } = this.#run
    for (let left = MOST_ATTEMPTS; left > 0; left--) {
      await this.#run.settleAll()
      if ((await fixture.mode()) === 'settled') return
      await finalize()
    }
    expect((await fixture.actions()).at(-1)).to.include({ status: 'MINED' })
  }

  async #expectEnded(finalize: () => Promise<number>): Promise<void> {
    const { fixture } = this.#run
    const ends = await fixture.rows('market_ended')
    expect(ends.map(({ rollback }) => rollback)).to.deep.equal(ends.map((_, at) => at % 2 === 1))
    expect(ends.at(-1)).to.include({ how: 'finalized', price: FINAL_PRICE.toString(), rollback: false })
    expect((await fixture.actions()).at(-1)).to.include({ kind: 'finalize_market', status: 'MINED' })
    const refused = await finalize().catch(String)
    expect(refused).to.include('MARKET_ENDED')
    expect(await this.#run.match(this.#run.traders.alice, 1), 'a batch of a market that has ended').to.equal(
      null,
    )
    await this.#expectAgreement()
  }

  async #expectAgreement(): Promise<void> {
    const { fixture } = this.#run
    await expectConsistent(fixture)
    await expectSameReadModel(fixture)
    await this.#run.expectAsOnChain()
    // A fork that takes back a foreign transaction leaves a gap, which a keeper fills when it starts or sends again.
    await this.#run.take({ kind: 'restart' })
    await this.#run.settleAll()
    await this.#run.expectNonces()
  }

  /** Every account gets what the rules say, also if a fork takes back some of the payouts. */
  async #payOut(depth: number): Promise<void> {
    const { fixture } = this.#run
    const users = await fixture.db.selectFrom('users').select(['user_id', 'address']).execute()
    const accounts = users.map(({ address }) => address as Address)
    const due = await this.#ending.reportDeficits(accounts)
    await this.#run.keepBlocks()
    await fixture.follow()
    const free = await freeInMirror(fixture.db)
    await this.#ending.claim(due.keys())
    await fixture.follow()
    await this.#run.take({ kind: 'fork', depth, isForeign: false })
    await this.#ending.claim(due.keys())
    await fixture.follow()
    for (const [account, amount] of await freeInMirror(fixture.db))
      expect(amount - (free.get(account) ?? 0n), `paid to ${account}`).to.equal(due.get(account) ?? 0n)
    const moves = await fixture.rows('positions_moved')
    for (const { cause } of moves.filter(({ rollback }) => !rollback)) this.#run.count(cause)
    const open = await withMirror(fixture.db)
      .selectFrom('positions')
      .select('user_id')
      .where('size', '<>', 0)
      .execute()
    expect(open).to.deep.equal([])
    expect((await this.#ending.pool()) < DUST, `left in the pool: ${await this.#ending.pool()}`).to.equal(
      true,
    )
    await this.#expectAgreement()
  }
}
