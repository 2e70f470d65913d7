/**
 * Settlement under faults in any order: reverts, foreign nonces, forks 1 to 8 blocks deep, restarts, steps of the system clock, over
 * preconfirmed receipts. `FAULT_RUNS` and `FAULT_SEED` take more runs or repeat one.
 */
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Auction } from '../../../keeper/auction/auction.ts'
import { perpetual } from '../../support/markets.ts'
import { preconfirmed, type RpcProxy, startRpcProxy } from '../../support/rpc-proxy.ts'
import {
  ChainFixture,
  foreignTransaction,
  revertTo,
  type SettlementFixture,
  useChain,
} from '../support/chain-fixture.ts'
import { expectConsistent, expectSameReadModel } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'

const RUNS = Number(process.env.FAULT_RUNS ?? 2)
const SEED = Number(process.env.FAULT_SEED ?? 7)

const stranger = new Wallet(id('stranger'))

type Fault =
  | { readonly kind: 'match'; readonly steps: number; readonly isBad: boolean }
  | { readonly kind: 'step' | 'follow' | 'foreign' | 'restart' }
  | { readonly kind: 'fork'; readonly depth: number }
  | { readonly kind: 'clock'; readonly ms: number }

const anyFault: fc.Arbitrary<Fault> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('match' as const),
      steps: fc.integer({ min: 1, max: 20 }),
      isBad: fc.constantFrom(false, false, true),
    }),
  },
  { weight: 8, arbitrary: fc.constant({ kind: 'step' as const }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'follow' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'foreign' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('fork' as const), depth: fc.integer({ min: 1, max: 8 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('clock' as const),
      ms: fc.constantFrom(5_000, 3_600_000, -5_000),
    }),
  },
)

class FaultRun {
  readonly fixture: ChainFixture
  readonly #url: string
  readonly #firstBlock: number
  #alice!: Trader
  #bob!: Trader
  #auctioning!: Fence
  #settling!: Fence
  #auction!: Auction
  #settlement!: SettlementFixture

  private constructor(fixture: ChainFixture, url: string, firstBlock: number) {
    this.fixture = fixture
    this.#url = url
    this.#firstBlock = firstBlock
  }

  static async open(fixture: ChainFixture, url: string): Promise<FaultRun> {
    await fixture.report(1000, Date.now())
    const traders = [await fixture.depositor('alice'), await fixture.depositor('bob')] as const
    const run = new FaultRun(fixture, url, await fixture.chainSide.provider.getBlockNumber())
    ;[run.#alice, run.#bob] = traders
    run.#auctioning = await fixture.lease('auction:m1')
    run.#settling = await fixture.lease('settle:m1')
    run.#auction = fixture.auction()
    await run.#restart()
    return run
  }

  async take(fault: Fault): Promise<void> {
    const { fixture } = this
    switch (fault.kind) {
      case 'match':
        return this.match(fault.steps, fault.isBad)
      case 'step':
        return this.#settlement.step(this.#settling)
      case 'follow':
        return fixture.follow()
      case 'foreign':
        return foreignTransaction(fixture.chainSide, await this.#usedNonces())
      case 'restart':
        return this.#restart()
      case 'fork':
        return this.#fork(fault.depth)
      case 'clock':
        fixture.clock.value += fault.ms
    }
  }

  async match(steps: number, isBad: boolean): Promise<void> {
    const { fixture } = this
    await fixture.report(1000, Date.now())
    await fixture.place({
      ...{ by: this.#alice, side: 'LONG', steps, limit: 1000 },
      ...(isBad ? { signer: stranger } : {}),
    })
    await fixture.place({ by: this.#bob, side: 'SHORT', steps, limit: 1000 })
    await this.#auction.run(this.#auctioning)
  }

  /** Everything settles, and the lane has used each of its nonces once. */
  async expectSettled(): Promise<void> {
    const { fixture } = this
    await this.match(1, false)
    await this.#settlement.settleAll(this.#settling, 25_000)
    await this.#settlement.step(this.#settling)
    await expectConsistent(fixture)
    await expectSameReadModel(fixture)
    const { mode, last_as_of } = await fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
    expect(mode).to.equal('open')
    expect(last_as_of).to.be.closeTo(Date.now(), 30_000)
    const position = await fixture.db
      .selectFrom('positions')
      .select('size')
      .where('user_id', '=', this.#alice.account)
      .executeTakeFirst()
    expect(await fixture.position(this.#alice)).to.equal(BigInt(position?.size ?? 0))
    const { next_nonce } = await fixture.db
      .selectFrom('relayers')
      .select('next_nonce')
      .executeTakeFirstOrThrow()
    expect(await this.#usedNonces()).to.equal(next_nonce)
  }

  async #restart(): Promise<void> {
    this.#settlement = this.fixture.settlement({ url: this.#url })
    await this.#settlement.start(this.#settling)
  }

  /** Blocks with the deposits stay. */
  async #fork(depth: number): Promise<void> {
    const { provider } = this.fixture.chainSide
    const deepest = (await provider.getBlockNumber()) - this.#firstBlock
    if (deepest > 0) await provider.send('anvil_reorg', [Math.min(depth, deepest), []])
    await provider.send('evm_mine', [])
  }

  #usedNonces(): Promise<number> {
    const { chainSide, lane } = this.fixture
    return chainSide.provider.getTransactionCount(lane.relayer)
  }
}

describe('settlement under faults', function () {
  this.timeout(Number(process.env.MODEL_TIMEOUT ?? 300_000))
  const chain = useChain(perpetual)
  let node: RpcProxy
  before(async () => {
    node = await startRpcProxy(chain().anvil.url, preconfirmed)
  })
  after(() => node.close())

  it('when faults come in any order, no fill is lost or repeated and the market stays open', async () => {
    const faults = fc.array(anyFault, { minLength: 10, maxLength: 24, size: 'max' })
    await fc.assert(
      fc.asyncProperty(faults, async (taken) => {
        const snapshot = await chain().provider.send('evm_snapshot', [])
        const fixture = await ChainFixture.openOn(chain())
        try {
          const run = await FaultRun.open(fixture, node.url)
          for (const fault of taken) await run.take(fault)
          await run.expectSettled()
        } finally {
          await fixture.close()
          await revertTo(chain(), snapshot)
        }
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    )
  })
})
