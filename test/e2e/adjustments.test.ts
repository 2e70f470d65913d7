/**
 * Adjustments on the complete exchange: each kind equals chain, read model and balance to the last wei, also when a process is killed at each
 * point of an attempt, and when a reorg removes it.
 */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { waitFor } from '../../client/wait-for.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { e18 } from '../support/markets.ts'
import { Adjuster, type RestAnswer, type SignedRequest } from './support/adjust.ts'
import { nearOracle, trade, useStack } from './support/stack.ts'

const MARKET = 1

describe('adjustments of margin and leverage on a running exchange', function () {
  this.timeout(120_000)
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
    expect((await trader.orders.get(resting.order.order_id)).status).to.equal('CANCELLED')
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

  // ---------------------------------------------------------------------- crashes

  /** The process ends at the point while the request runs, and the request, repeated, is executed once. */
  async function killedAt(process: Managed, point: string, request: SignedRequest): Promise<RestAnswer> {
    await process.restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
    const died = process.nextEnd()
    await process.ready()
    // A keeper that has just started runs the lane a moment later.
    const isAccepted = ({ status }: RestAnswer) => status !== 503
    const sent = waitFor(() => alice.send(request), isAccepted, { budgetMs: 30_000, everyMs: 200 }).catch(
      () => null,
    )
    expect(await died, point).to.equal('SIGKILL')
    await process.ready()
    await sent
    return waitFor(
      () => alice.send(request),
      ({ status }) => status !== 408 && status !== 503,
      { budgetMs: 60_000, everyMs: 200 },
    )
  }

  for (const [name, point] of [
    ['api', 'after-adjustment-prepared'],
    ['keeper', 'after-adjustment-reserved'],
    ['keeper', 'after-adjustment-signed'],
    ['keeper', 'after-adjustment-submitted'],
    ['indexer', 'before-block-commit'],
  ] as const) {
    it(`when ${name} is killed at ${point}, the adjustment is executed once or not at all, and its reservation is released`, async () => {
      const { margin } = await onChain()
      const answer = await killedAt(exchange.stack[name], point, alice.margin('3'))
      // On a slow machine the next process can start after the lifetime of the attempt or of the signed bytes.
      const isAborted = /^not (mined in time|executed within)/.test(answer.body.details?.failure_reason)
      if (!isAborted) expectDone(answer)
      expect((await onChain()).margin - margin).to.equal(isAborted ? 0n : e18('3'))
      await expectAgreement()
    })
  }
})
