/**
 * Adjustments on the complete exchange: each kind equals chain, read model and balance to the last wei, also when a process is killed at each
 * point of an attempt, when a reorg removes it, and when the node of its relayer responds twice, late or never.
 */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { isAdjustment } from '../../domain/journal/move-cause.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { e18 } from '../support/markets.ts'
import { waitFor } from '../support/patience.ts'
import { Adjuster, type RestAnswer, type SignedRequest } from './support/adjust.ts'
import { MinedRows } from './support/fork-under.ts'
import { lanesWithJobs } from './support/lane-jobs.ts'
import { RelayerNode } from './support/relayer-node.ts'
import { startSecondKeeper } from './support/second-instance.ts'
import { nearOracle, trade, useStack } from './support/stack.ts'

const MARKET = 1
const WAIT = { budgetMs: 90_000 }
const DONE = ['PREPARED', 'SIGNED', 'COMMITTED']

describe('adjustments of margin and leverage on a running exchange', function () {
  this.timeout(300_000)
  const exchange = useStack()
  let alice: Adjuster

  before(async () => {
    alice = new Adjuster(exchange.stack, 0)
    const [buyer, seller] = [exchange.trader(0), exchange.trader(1)]
    const price = await nearOracle(buyer, MARKET)
    await trade(buyer, seller, { marketId: MARKET, price, quantity: '0.1' })
  })

  const onChain = async () => {
    const spec = exchange.stack.specs.find(({ marketId }) => marketId === MARKET)
    const trader = IsolatedTrader__factory.connect(spec?.trader as string, exchange.stack.provider)
    return trader.position(alice.account.address)
  }
  const expectAgreement = async (): Promise<void> => {
    expect(await exchange.differences()).to.deep.equal([])
    const rows = await exchange.stack.db.selectFrom('adjustment_attempts').select('held').execute()
    expect(rows.filter(({ held }) => held !== 0n)).to.deep.equal([])
  }
  const expectDone = ({ status, body }: RestAnswer): void => {
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.success).to.equal(true)
    expect(body.execution.tx_hash).to.equal(body.tx_hash)
  }

  it('when margin is added, the margin of the contract grows by exactly the amount, and the attempt is listed at the bookmark', async () => {
    const { margin } = await onChain()
    const answer = await alice.send(alice.margin('12.5'))
    expectDone(answer)
    expect((await onChain()).margin - margin).to.equal(e18('12.5'))
    const { shard_id, shard_seq } = answer.body.read_after
    const { body } = await alice.attempts(
      `?read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`,
    )
    expect(body.attempts[0]).to.include({
      ...{ adjustment_id: answer.body.adjustment_id, kind: 'add_margin', status: 'COMMITTED' },
      ...{ amount_e18_raw: `${e18('12.5')}`, tx_hash: answer.body.tx_hash, failure_kind: null },
    })
    await expectAgreement()
    expect(await lanesWithJobs(exchange.stack.db)).to.include.members(['adjust', `m${MARKET}`])
  })

  it('when margin is removed exactly and up to an amount, what moves is what the chain moved', async () => {
    const before = (await onChain()).margin
    expectDone(await alice.send(alice.margin('-2.25', { form: 'personal' })))
    expect(before - (await onChain()).margin).to.equal(e18('2.25'))
    const rest = await alice.send(alice.margin('-100000', { mode: 'up_to' }))
    expectDone(rest)
    const moved = -BigInt(rest.body.amount_e18_raw)
    expect(before - (await onChain()).margin).to.equal(e18('2.25') + moved)
    expect(rest.body.max_removable_amount).to.be.closeTo(Number(moved) / 1e18, 1)
    await expectAgreement()
  })

  it('when the leverage is changed, the open orders of the market are cancelled, and the chain has the leverage', async () => {
    const trader = exchange.trader(0)
    const low = await nearOracle(trader, MARKET, -1_000)
    const resting = await trader.orders.place({
      marketId: MARKET,
      side: 'LONG',
      price: low,
      quantity: '0.01',
    })
    const answer = await alice.send(alice.leverage(4, { maxIn: '1000' }))
    expectDone(answer)
    expect(answer.body).to.include({ cancelled_orders: 1, recreated_orders: 0 })
    const order = await trader.orders.get(resting.order.order_id, { readAfter: answer.body.read_after })
    expect(order.status).to.equal('CANCELLED')
    expect((await onChain()).leverage).to.equal(4n)
    await expectAgreement()
  })

  it('when the same signed request is sent again, it returns the same attempt', async () => {
    const request = alice.margin('1')
    const [first, second] = await Promise.all([alice.send(request), alice.send(request)])
    const third = await alice.send(request)
    expect([first.status, second.status, third.status]).to.deep.equal([200, 200, 200])
    expect([second.body, third.body]).to.deep.equal([first.body, first.body])
    await expectAgreement()
  })

  /** The statuses of the attempt, in their order. */
  const statusesOf = async (adjustmentId: string): Promise<string[]> => {
    const { db } = exchange.stack
    const rows = await db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'm1')
      .orderBy('seq')
      .execute()
    return rows.flatMap(({ row }) =>
      row.kind === 'adjustment_changed' && row.adjustment_id === adjustmentId ? [row.status] : [],
    )
  }
  const untilStatus = (adjustmentId: string, status: string, times = 1) =>
    waitFor(
      () => statusesOf(adjustmentId),
      (found) => found.at(-1) === status && found.filter((each) => each === status).length === times,
      WAIT,
    )
  const adjustmentsOf = (account: number) => {
    const userId = exchange.stack.file.accounts[account]?.user_id
    return new MinedRows(
      ...([exchange.stack, MARKET] as const),
      (row) => row.kind === 'positions_moved' && isAdjustment(row) && row.account === userId,
    )
  }

  /** Repeats the request until its outcome is known. */
  const outcomeOf = (by: Adjuster, request: SignedRequest): Promise<RestAnswer> =>
    waitFor(
      () => by.send(request),
      ({ status }) => status !== 408 && status !== 503,
      { ...WAIT, everyMs: 200 },
    )

  // ---------------------------------------------------------------------- crashes

  /** Restarts the process, which ends when it next reaches the point. Returns its end. */
  async function armed(process: Managed, point: string): Promise<{ readonly died: Promise<unknown> }> {
    await process.restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
    const died = process.nextEnd()
    await process.ready()
    return { died }
  }

  /** The answer may be lost with the api. A keeper that has just started runs the lane a moment later. */
  const sendOnce = (request: SignedRequest): Promise<RestAnswer | null> =>
    waitFor(
      () => alice.send(request),
      ({ status }) => status !== 503,
      { ...WAIT, everyMs: 200 },
    ).catch(() => null)

  async function killAll(...processes: readonly Managed[]): Promise<void> {
    await Promise.all(processes.map((process) => process.restart('SIGKILL')))
    await Promise.all(processes.map((process) => process.ready()))
  }

  const statusOf = async ({ body }: SignedRequest): Promise<string | undefined> => {
    const attempts = exchange.stack.db.selectFrom('adjustment_attempts').select('status')
    return (await attempts.where('nonce', '=', body.nonce as number).executeTakeFirst())?.status
  }

  /** The request, repeated, has moved three and released its reservation. */
  async function expectExecuted(request: SignedRequest, before: bigint): Promise<void> {
    expectDone(await outcomeOf(alice, request))
    expect((await onChain()).margin - before).to.equal(e18('3'))
    await expectAgreement()
  }

  for (const [name, point, others, status] of [
    ['api', 'after-adjustment-prepared', [], 'PREPARED'],
    ['keeper', 'after-adjustment-submitted', ['api', 'indexer'], 'SUBMITTED'],
  ] as const) {
    it(`when the processes ${[name, ...others].join(', ')} are killed at ${point} (${status}), the adjustment is executed once`, async () => {
      const { stack } = exchange
      const { margin } = await onChain()
      const request = alice.margin('3')
      const { died } = await armed(stack[name], point)
      const sent = sendOnce(request)
      expect(await died).to.equal('SIGKILL')
      await killAll(...others.map((other) => stack[other]))
      await stack[name].ready()
      await sent
      await expectExecuted(request, margin)
    })
  }

  for (const [point, status] of [
    ['after-adjustment-reserved', 'PREPARED'],
    ['after-adjustment-signed', 'SIGNED'],
  ] as const) {
    it(`when the processes keeper, api, indexer are killed at ${point} (${status}), the next owner of the lane executes it within its lifetime`, async () => {
      const { keeper, api, indexer } = exchange.stack
      const { margin } = await onChain()
      const request = alice.margin('3')
      const { died } = await armed(keeper, point)
      const lease = exchange.stack.db.selectFrom('leases').select('owner').where('name', '=', 'adjust')
      await waitFor(
        () => lease.executeTakeFirst(),
        (owned) => owned?.owner.includes(`-${keeper.pid()}-`) === true,
        WAIT,
      )
      const stopSecond = await startSecondKeeper(exchange.stack)
      try {
        const sent = sendOnce(request)
        expect(await died).to.equal('SIGKILL')
        await keeper.stop()
        expect(await statusOf(request)).to.equal(status)
        await killAll(api, indexer)
        await sent
        await expectExecuted(request, margin)
      } finally {
        await stopSecond()
        await keeper.restart('SIGTERM')
        await keeper.ready()
      }
    })
  }

  it('when the processes indexer, keeper, api are killed once an adjustment is mined but not ingested, it is executed once', async () => {
    const { keeper, api, indexer, db, keys } = exchange.stack
    const { margin } = await onChain()
    const request = alice.margin('3')
    process.kill(indexer.pid() as number, 'SIGSTOP')
    const sent = sendOnce(request)
    const last = db.selectFrom('relayer_transactions').select('status').orderBy('nonce', 'desc').limit(1)
    await waitFor(
      async () => [
        await statusOf(request),
        (await last.where('relayer', '=', keys.adjust.address.toLowerCase()).executeTakeFirst())?.status,
      ],
      (statuses) => `${statuses}` === 'SUBMITTED,MINED',
      WAIT,
    )
    await killAll(indexer, keeper, api)
    await sent
    await expectExecuted(request, margin)
  })

  // ---------------------------------------------------------------------- forks, and the responses of a relayer's node

  it('when a fork removes a committed adjustment, the same transaction is mined again, and the request returns the same attempt', async () => {
    const { margin } = await onChain()
    const request = alice.margin('4.5')
    // The keeper of the test before was killed: until its lease of the lane ends, the answer is 503.
    const first = await outcomeOf(alice, request)
    expectDone(first)
    const id = first.body.adjustment_id
    const removed = await adjustmentsOf(0).fork()
    expect(removed.tx_hash).to.equal(first.body.tx_hash)
    const statuses = await untilStatus(id, 'COMMITTED', 2)
    expect(statuses.slice(-3)).to.deep.equal(['COMMITTED', 'SUBMITTED', 'COMMITTED'])
    const again = await alice.send(request)
    expectDone(again)
    expect(again.body).to.include({ adjustment_id: id, tx_hash: first.body.tx_hash, amount: 4.5 })
    expect((await onChain()).margin - margin).to.equal(e18('4.5'))
    await expectAgreement()
  })

  describe("when a relayer's node is faulty", () => {
    let node: RelayerNode
    let bob: Adjuster
    before(async () => {
      const { adjust, relay } = exchange.stack.keys
      node = await RelayerNode.open(exchange.stack, [adjust.address, relay.address])
      bob = new Adjuster(exchange.stack, 1)
    })
    after(() => node.close())

    for (const manner of ['twice', 'late', 'never'] as const) {
      it(`when it responds ${manner} to a send, an adjustment and a relay are executed once`, async () => {
        node.manner = manner
        const { margin } = await onChain()
        const key = Wallet.createRandom().address
        const [answer, operation] = await Promise.all([
          outcomeOf(alice, alice.margin('2')),
          exchange.trader(2).sessionKeys.register(key),
        ])
        expectDone(answer)
        expect(operation.status).to.equal('CONFIRMED')
        expect((await onChain()).margin - margin).to.equal(e18('2'))
        const statuses = await statusesOf(answer.body.adjustment_id)
        // The chain may have executed it before the keeper notes that it is sent.
        expect(statuses.filter((status) => status !== 'SUBMITTED')).to.deep.equal(DONE)
        await expectAgreement()
      })
    }

    it('when sends are lost for longer than their lifetime, adjustments are aborted, one that a fork removed too, and a relay is executed later', async () => {
      node.manner = 'once'
      const before = (await onChain()).margin
      const request = alice.margin('6')
      const committed = await outcomeOf(alice, request)
      expectDone(committed)
      const { adjustment_id: id } = committed.body
      node.manner = 'lost'
      const { sessionKeys } = exchange.trader(3)
      const registering = sessionKeys.register(Wallet.createRandom().address, { budgetMs: WAIT.budgetMs })
      const lost = bob.margin('7')
      const sent = outcomeOf(bob, lost)
      await adjustmentsOf(0).fork()

      await untilStatus(id, 'SUBMITTED', 2)
      expect((await onChain()).margin).to.equal(before)
      await waitFor(
        async () => (await alice.attempts(`?adjustment_id=${id}`)).body.attempts,
        ([attempt]) => attempt.status === 'SUBMITTED',
        WAIT,
      )
      expect(await exchange.differences()).to.deep.equal([])

      for (const [by, repeated, aborted] of [
        [alice, request, await outcomeOf(alice, request)],
        [bob, lost, await sent],
      ] as const) {
        expect(aborted.status).to.equal(409)
        expect(aborted.body.details).to.include({
          code: 'ADJUSTMENT_ABORTED',
          failure_reason: 'not mined in time',
        })
        const again = await by.send(repeated)
        expect(again.body.details.adjustment_id).to.equal(aborted.body.details.adjustment_id)
      }
      expect((await statusesOf(id)).slice(-3)).to.deep.equal(['COMMITTED', 'SUBMITTED', 'ABORTED'])
      node.manner = 'once'
      expect((await registering).status).to.equal('CONFIRMED')
      expect((await onChain()).margin).to.equal(before)
      await expectAgreement()
    })
  })
})
