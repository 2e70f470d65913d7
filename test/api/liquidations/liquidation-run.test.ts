/** What a trader reads of a liquidation by the keeper's own job: order, events, fills, transactions, steps, and the public's figures. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { type Api, compose } from '../../../api/compose.ts'
import { readConfig } from '../../../api/config.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import { createLogger } from '../../../service/logger.ts'
import { LiquidationRun } from '../../keeper/support/liquidation-run.ts'
import type { Trader } from '../../keeper/support/market-fixture.ts'
import { mineOldestPart } from '../../keeper/support/mine-part.ts'
import { AdoptingEngine } from '../../support/adopting-engine.ts'
import { apiEnv } from '../support/exchange-fixture.ts'

describe('reading a liquidation', function () {
  this.timeout(30_000)
  let run: LiquidationRun
  let api: Api
  let own: string

  before(async () => {
    run = await LiquidationRun.open()
    const { alice, bob, carol, fixture } = run
    const config = readConfig(apiEnv(fixture.url))
    api = await compose(config, createLogger('api', config.logLevel), new AdoptingEngine(fixture.db))
    // A long of 0.1 from 100 with a margin of 0.5; at 97.5 it is below the threshold.
    await run.deal(alice, bob, 100, 20)
    await mineOldestPart(fixture)
    own = await fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 900, leverage: 20 })
    await fixture.place({ by: carol, side: 'LONG', steps: 60, limit: 980 })
    await run.turn()
    await run.report(975)
    await run.turn()
    await mineOldestPart(fixture)
    await projectAll(fixture.db, { limit: 1_000, killPoint() {} })
  })
  after(async () => {
    await api.stop()
    await run.fixture.close()
  })

  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies by name
  async function get(path: string, trader: Trader | null = null): Promise<any> {
    const key = trader && (await createApiKey(run.fixture.db, trader.account))
    const headers = key === null ? {} : { authorization: `Key ${key}` }
    const { statusCode, body } = await api.app.inject({ method: 'GET', url: path, headers })
    expect(statusCode, body).to.equal(200)
    return JSON.parse(body)
  }

  const forcedOrder = async () => {
    const { orders } = await get(`/v0/orders/by-user/${run.alice.account}`, run.alice)
    return orders.find(({ forced }: { forced: boolean }) => forced)
  }

  it('when the owner lists orders, the forced one is a reduce-only market order without a signer, and the own one has ended', async () => {
    expect(await forcedOrder()).to.include({
      ...{
        order_type: 'MARKET',
        side: 'SHORT',
        reduce_only: true,
        forced: true,
        signer: null,
        status: 'OPEN',
      },
      ...{ quantity: 0.1, filled_quantity: 0.06, price: 0 },
    })
    const ended = await get(`/v0/orders/${own}`, run.alice)
    expect(ended).to.include({ status: 'CANCELLED', status_reason: 'LIQUIDATION', forced: false })
    const { events } = await get(`/v0/orders/${own}/events`, run.alice)
    const last = events.find(({ kind }: { kind: string }) => kind === 'CANCELLED')
    expect(last.details).to.include({ status_reason: 'LIQUIDATION' })
  })

  it('when the owner cancels the forced order, it is rejected, and the order stays', async () => {
    const { order_hash } = await forcedOrder()
    const key = await createApiKey(run.fixture.db, run.alice.account)
    const answer = await api.app.inject({
      ...{ method: 'POST', url: `/v0/orders/cancel/by-hash/${order_hash}`, payload: {} },
      headers: { authorization: `Key ${key}` },
    })
    expect([answer.statusCode, answer.json().details.code]).to.deep.equal([409, 'ORDER_FORCED'])
    expect(await forcedOrder()).to.include({ status: 'OPEN' })
  })

  it('when the owner lists the events of the forced order, they have its acceptance and its fill', async () => {
    const { order_id } = await forcedOrder()
    const { events } = await get(`/v0/orders/${order_id}/events`, run.alice)
    expect(events.map(({ kind }: { kind: string }) => kind).sort()).to.deep.equal([
      'CREATED',
      'PARTIALLY_FILLED',
    ])
  })

  it('when fills and transactions are listed, the forced fill is in both, with the margin that it released', async () => {
    const { fills } = await get(`/v0/fills/by-user/${run.alice.account}`, run.alice)
    expect(fills.map(({ forced, quantity }: Record<string, unknown>) => [forced, quantity])).to.deep.equal([
      [true, 0.06],
      [false, 0.1],
    ])
    const { transactions } = await get('/v0/account/transactions?transaction_type=liquidation', run.alice)
    expect(transactions).to.have.length(1)
    // 0.06 of 0.1 of a margin of 0.5; sold at the price of the batch, with a fee.
    const [{ amount, available_margin_delta: received, market_id }] = transactions
    expect([amount, market_id]).to.deep.equal([0.3, 1])
    expect(received).to.be.closeTo(0.3 + fills[0].realized_pnl - fills[0].fee, 1e-12)
    expect(
      (await get('/v0/account/transactions?transaction_type=liquidation', run.carol)).transactions,
    ).to.deep.equal([])
  })

  it('when the steps are listed, the owner sees them with the signed report behind each, and the other side sees none', async () => {
    const { steps } = await get('/v0/account/liquidations', run.alice)
    expect(steps.map(({ step, reason }: Record<string, unknown>) => `${step} ${reason}`)).to.deep.equal([
      'forced BELOW_THRESHOLD',
      'started BELOW_THRESHOLD',
    ])
    const [{ evidence, order_id }] = steps
    expect(order_id).to.equal((await forcedOrder()).order_id)
    expect(evidence).to.include({
      oracle_price: 97.5,
      threshold: 0.0275,
      size: 0.1,
      entry_notional: 10,
      margin: 0.5,
    })
    const { evidence: report } = await get(`/v0/markets/1/oracle?observed_at=${evidence.oracle_price_at}`)
    expect(report).to.include({ price: 97.5 })
    expect((await get('/v0/account/liquidations', run.bob)).steps).to.deep.equal([])
  })

  it('when the public reads, it sees the forced fill, a running liquidation, and no account', async () => {
    const { liquidations } = await get('/v0/liquidations?market_id=1')
    expect(liquidations).to.have.length(1)
    expect(liquidations[0]).to.include({ kind: 'forced_fill', side: 'LONG', quantity: 0.06 })
    const { fills } = await get('/v0/fills/by-market/1')
    const forced = fills.filter((fill: { forced: boolean }) => fill.forced)
    expect(forced.map(({ batch_id, part }: Record<string, unknown>) => [batch_id, part])).to.deep.equal([
      [liquidations[0].batch_id, liquidations[0].part],
    ])
    expect(await get('/v0/risk/1')).to.include({ running_liquidations: 1, open_interest: 0.1 })
  })
})
