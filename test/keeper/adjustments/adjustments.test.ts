/** The job of adjustments on a real chain: whose transaction executes an attempt, and what failures leave. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { LeaseLost } from '../../../db/fence.ts'
import { createCalls } from '../../../keeper/adapters/calls.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { passTime, replaceFrom } from '../../support/chain-faults.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { AdjustmentRun, changeLeverage, changeMargin, type KeeperOptions } from '../support/adjustment-run.ts'
import { adjustKey, foreignTransaction, useChain } from '../support/chain-fixture.ts'
import { openTrading } from '../support/trading.ts'

class Killed extends Error {}

describe('the job of adjustments', function () {
  this.timeout(30_000)
  const chain = useChain(perpetual)
  let run: AdjustmentRun
  let margin: bigint

  beforeEach(async () => {
    run = await AdjustmentRun.on(await openTrading(chain()))
    margin = await run.marginOf(run.alice)
  })
  afterEach(() => run.close())

  const start = async (options?: KeeperOptions) => run.keeper(await run.acquire('keeper'), options)
  const added = async () => (await run.marginOf(run.alice)) - margin

  /** A keeper that ends at the point, in its first pass. */
  async function dieAt(point: string): Promise<void> {
    const killPoint = (reached: string) => {
      if (reached === point) throw new Killed(point)
    }
    await (await start({ killPoint })).step()
  }

  /** Replaces the block of the lane's transaction and all after it by empty ones. */
  async function forkFrom(block: number): Promise<void> {
    await replaceFrom(chain().provider, block)
    await run.fixture.follow()
  }

  it('when attempts of several accounts wait, one pass signs all, also if one attempt cannot be decided on', async () => {
    const [first, second] = [
      await run.accept(run.alice, changeMargin('10')),
      await run.accept(run.bob, changeLeverage(4)),
    ]
    const calls = createCalls({ part: 400_000n, order: 150_000n, simple: 300_000n })
    let isFailing = true
    const adjust: typeof calls.adjust = (spec, call) => {
      if (isFailing && call.account === run.bob.wallet.address.toLowerCase()) throw new Error('no call')
      return calls.adjust(spec, call)
    }
    const keeper = await start({ adjust })
    await keeper.step()
    expect([await run.statusOf(first), await run.statusOf(second)]).to.deep.equal(['SUBMITTED', 'PREPARED'])
    isFailing = false
    const third = await run.accept(run.alice, changeMargin('1'))
    await run.settle(keeper)
    const ends = await Promise.all([first, second, third].map(run.statusOf))
    expect(ends).to.deep.equal(['COMMITTED', 'COMMITTED', 'COMMITTED'])
    expect(await added()).to.equal(e18('11'))
  })

  it('when another keeper has the lease, the stale one signs nothing, and the transaction that it has sent is not sent twice', async () => {
    const id = await run.accept(run.alice, changeMargin('10'))
    const stale = await run.keeper(await run.acquire('first'))
    let second = await run.keeper(await run.acquire('second'))
    expect(await stale.step().catch((error: unknown) => error)).to.be.instanceOf(LeaseLost)
    expect(await run.sent()).to.deep.equal([])
    await second.step()
    second = await run.keeper(await run.acquire('third'))
    await run.settle(second)
    expect(await run.statusOf(id)).to.equal('COMMITTED')
    // The nonce that the stale keeper has reserved is used by a transaction of nothing.
    const mined = (await run.sent()).filter(({ status }) => status === 'MINED')
    expect(mined.map(({ purpose }) => purpose).toSorted()).to.deep.equal(['adjustment', 'nothing'])
    expect(await added()).to.equal(e18('10'))
  })

  for (const [point, leaves, nonces] of [
    ['after-adjustment-reserved', 'PREPARED', [0, 1]],
    ['after-adjustment-signed', 'SIGNED', [0]],
    ['after-adjustment-submitted', 'SUBMITTED', [0]],
  ] as const) {
    it(`when the keeper ends ${point}, the next one executes the attempt once`, async () => {
      const id = await run.accept(run.alice, changeMargin('10'))
      await dieAt(point)
      expect(await run.statusOf(id)).to.equal(leaves)
      await run.settle(await start())
      expect(await run.statusOf(id)).to.equal('COMMITTED')
      expect((await run.sent()).map(({ nonce }) => nonce)).to.deep.equal(nonces)
      expect(await added()).to.equal(e18('10'))
    })
  }

  it("when the transaction reverts, the attempt is aborted with the contract's error and released", async () => {
    const id = await run.accept(run.alice, changeMargin('10'), { signer: run.bob })
    await run.settle(await start())
    const { status, failure_kind, failure_reason, relayer_nonce } = await run.attempt(id)
    expect({ status, failure_kind, relayer_nonce }).to.deep.equal({
      ...{ status: 'ABORTED', failure_kind: null, relayer_nonce: 0 },
    })
    expect(failure_reason).to.match(/^[A-Z]\w+\(/)
    expect(await added()).to.equal(0n)
  })

  it('when a foreign transaction uses the nonce, the attempt is aborted, and the next one is executed', async () => {
    const id = await run.accept(run.alice, changeMargin('10'))
    await dieAt('after-adjustment-signed')
    await foreignTransaction(chain(), 0, adjustKey)
    const keeper = await start()
    await run.settle(keeper)
    expect(await run.attempt(id)).to.include({
      ...{ status: 'ABORTED', failure_reason: 'nonce used by a foreign transaction' },
    })
    const next = await run.accept(run.alice, changeMargin('7'))
    await run.settle(keeper)
    expect(await run.statusOf(next)).to.equal('COMMITTED')
    expect(await added()).to.equal(e18('7'))
  })

  it('when a fork removes the adjustment, the attempt holds its amount again, and the same bytes are sent again', async () => {
    const id = await run.accept(run.alice, changeMargin('10'))
    const keeper = await start()
    await run.settle(keeper)
    const [mined] = await run.sent()
    await forkFrom(mined?.block as number)
    expect(await run.statusOf(id)).to.equal('SUBMITTED')
    await run.expectLaws()
    await run.settle(keeper)
    expect(await run.statusOf(id)).to.equal('COMMITTED')
    expect((await run.sent()).map(({ tx_hash }) => tx_hash)).to.deep.equal([mined?.tx_hash])
    expect(await added()).to.equal(e18('10'))
  })

  it('when the transaction succeeds without an event, the attempt fails with the kind and is released', async () => {
    const id = await run.accept(run.alice, changeMargin('10'))
    const { noop } = createCalls({ part: 400_000n, order: 150_000n, simple: 300_000n })
    await run.settle(await start({ adjust: () => noop(run.lane.relayer) }))
    expect(await run.attempt(id)).to.include({
      status: 'RECEIPT_RECONCILIATION_FAILED',
      failure_kind: 'no_account_adjustment_position_updates',
    })
    expect(await added()).to.equal(0n)
  })

  it('when an attempt is aborted before it is signed, it voids no transaction of the lane', async () => {
    const late = await run.accept(run.alice, changeMargin('5'), { life: -1 })
    const keeper = await start()
    await keeper.step()
    expect(await run.attempt(late)).to.include({ status: 'ABORTED', relayer: null, relayer_nonce: null })
    await run.accept(run.alice, changeMargin('10'))
    await keeper.step()
    const isVoid = async () => (await run.assigned()).map((one) => one.isVoid)
    expect(await isVoid()).to.deep.equal([false])
    await run.fixture.follow()
    expect(await isVoid()).to.deep.equal([false])
  })

  /** Sends nothing: the node has lost what it accepted. */
  const losing = (isLosing: () => boolean) => (node: Chain) => ({
    ...node,
    send: (raw: `0x${string}`) => (isLosing() ? Promise.resolve({ kind: 'sent' as const }) : node.send(raw)),
  })

  it('when the transaction is not mined in its lifetime, one of nothing ends the attempt, also after a fork', async () => {
    const id = await run.accept(run.alice, changeMargin('10'))
    let isLosing = true
    const keeper = await start({ wrap: losing(() => isLosing) })
    await keeper.step()
    expect(await run.statusOf(id)).to.equal('SUBMITTED')
    await passTime(chain(), 30_000)
    run.fixture.clock.value += 30_000
    isLosing = false
    await run.settle(keeper)
    expect(await run.attempt(id)).to.include({ status: 'ABORTED', failure_reason: 'not mined in time' })
    const sent = await run.sent()
    expect(sent.map(({ purpose, status }) => [purpose, status])).to.deep.equal([
      ['adjustment', 'REPLACED'],
      ['nothing', 'MINED'],
    ])
    expect((await run.assigned()).map(({ isVoid }) => isVoid)).to.deep.equal([true, false])
    await forkFrom(sent[1]?.block as number)
    expect(await chain().provider.getTransactionCount(run.lane.relayer)).to.equal(0)
    const next = await start()
    for (let passes = 0; passes < 3; passes++) await next.step()
    expect(await chain().provider.getTransactionCount(run.lane.relayer)).to.equal(1)
    expect((await run.sent()).map(({ status }) => status)).to.deep.equal(['REPLACED', 'MINED'])
    expect(await added()).to.equal(0n)
  })

  it('when the lane has no gas, the attempt waits for it; it is aborted at the end of its lifetime', async () => {
    const { provider } = chain()
    const setBalance = (wei: string) => provider.send('anvil_setBalance', [run.lane.relayer, wei])
    const full = `0x${(10n ** 20n).toString(16)}`
    await setBalance('0x0')
    const id = await run.accept(run.alice, changeMargin('10'))
    const keeper = await start()
    await keeper.step()
    expect(await run.statusOf(id)).to.equal('SUBMITTED')
    await setBalance(full)
    await run.settle(keeper)
    expect(await run.statusOf(id)).to.equal('COMMITTED')
    await setBalance('0x0')
    const poor = await run.accept(run.alice, changeMargin('5'))
    await keeper.step()
    await passTime(chain(), 60_000)
    run.fixture.clock.value += 60_000
    const expire = run.expiry()
    await expire()
    expect(await run.statusOf(poor)).to.equal('ABORTED')
    // With gas again, the nonce of the aborted attempt is filled; its bytes are not sent.
    await setBalance(full)
    const next = await start()
    const isFilled = async () => (await run.sent()).at(-1)?.purpose === 'nothing'
    for (let passes = 0; passes < 3 || (passes < 30 && !(await isFilled())); passes++) await next.step()
    expect((await run.sent()).at(-1)).to.include({ nonce: 1, purpose: 'nothing', status: 'MINED' })
    expect(await added()).to.equal(e18('10'))
  })
})
