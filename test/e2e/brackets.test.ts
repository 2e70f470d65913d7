/** Brackets and closes on a complete exchange: what the chain settles, and what a restart leaves. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Client } from '../../client/client.ts'
import type { PlacedOrder } from '../../client/responses.ts'
import { isDone, nearOracle, useStack } from './support/stack.ts'

const MARKET = 1

describe('brackets and closes on a complete exchange', function () {
  this.timeout(180_000)
  const exchange = useStack()

  const order = async (client: Client, side: 'LONG' | 'SHORT', moved: number, quantity: string) => ({
    marketId: MARKET,
    side,
    price: await nearOracle(client, MARKET, moved),
    quantity,
    leverage: 2,
  })
  const stateOf = ({ status, status_reason, filled_quantity }: PlacedOrder) => [
    status,
    status_reason,
    filled_quantity,
  ]

  it('when the engine restarts between an entry and its match, the exits still wait for it, and a close ends them with the position', async () => {
    const [maker, trader] = [exchange.trader(0), exchange.trader(1)]
    const entry = await order(trader, 'LONG', 3, '0.02')
    const exit = { marketId: MARKET, side: 'SHORT', quantity: '0.02', leverage: 2, reduceOnly: true } as const
    const { engine } = exchange.stack
    const bracketId = 7
    const { results } = (
      await trader.orders.placeBatch(
        [
          { ...entry, bracketId },
          {
            ...exit,
            bracketId,
            type: 'TAKE_PROFIT_LIMIT',
            trigger: await nearOracle(trader, MARKET, -1_000),
            price: await nearOracle(trader, MARKET, 2_000),
          },
          { ...exit, bracketId, type: 'STOP_LOSS_MARKET', trigger: await nearOracle(trader, MARKET, -2_000) },
        ],
        { mode: 'atomic' },
      )
    ).orThrow()
    const [entered, profit, loss] = results as [(typeof results)[0], (typeof results)[0], (typeof results)[0]]
    await engine.restart('SIGTERM')
    await engine.ready()
    // The mark has reached the trigger of the take profit since before its entry.
    expect((await trader.orders.get(profit.order.order_id)).status).to.equal('PENDING_TRIGGER')
    // The oracle price may have moved since.
    await maker.orders.place({ ...(await order(maker, 'SHORT', 1, '0.02')), price: entry.price })
    expect(stateOf(await trader.orders.waitFor(entered, isDone, 60_000))).to.deep.equal([
      'FILLED',
      'FILLED',
      0.02,
    ])
    const triggered = await trader.orders.waitFor(
      profit,
      ({ status }) => status !== 'PENDING_TRIGGER',
      60_000,
    )
    expect(triggered.status).to.equal('OPEN')

    await maker.orders.place(await order(maker, 'LONG', -1, '0.05'))
    const close = await trader.positions.close(MARKET, { quantity: '0.04' })
    expect(close).to.include({ position_quantity: 0.02, closing_quantity: 0.02, staying_quantity: 0 })
    const closed = await trader.orders.waitFor(close as NonNullable<typeof close>, isDone, 60_000)
    expect(stateOf(closed)).to.deep.equal(['CANCELLED', 'MARKET_REMAINDER', 0.02])
    for (const one of [profit, loss])
      expect(stateOf(await trader.orders.waitFor(one, isDone, 60_000))).to.deep.equal([
        'CANCELLED',
        'POSITION_CLOSED',
        0,
      ])
    expect(await trader.positions.close(MARKET)).to.equal(null)
    await maker.orders.cancelAll()
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when an exit fills on the chain, the other one ends with that block, and an entry that is cancelled ends its exits', async () => {
    const [maker, trader] = [exchange.trader(2), exchange.trader(3)]
    const ask = await order(maker, 'SHORT', 1, '0.04')
    await maker.orders.place(ask)
    const opened = await trader.orders.place({ ...ask, side: 'LONG' })
    await trader.orders.waitFor(opened, isDone, 60_000)
    const exit = { marketId: MARKET, side: 'SHORT', quantity: '0.01', leverage: 2, reduceOnly: true } as const
    const loss = await trader.orders.place({
      ...exit,
      bracketId: 8,
      type: 'STOP_LOSS_MARKET',
      trigger: await nearOracle(trader, MARKET, -2_000),
    })
    await maker.orders.place(await order(maker, 'LONG', -1, '0.01'))
    const profit = await trader.orders.place({
      ...exit,
      bracketId: 8,
      type: 'TAKE_PROFIT_MARKET',
      trigger: await nearOracle(trader, MARKET, -1_000),
    })
    expect(stateOf(await trader.orders.waitFor(profit, isDone, 60_000))).to.deep.equal([
      'FILLED',
      'FILLED',
      0.01,
    ])
    expect(stateOf(await trader.orders.waitFor(loss, isDone, 60_000))).to.deep.equal([
      'CANCELLED',
      'EXIT_FILLED',
      0,
    ])

    const { results } = (
      await trader.orders.bracket({
        entry: await order(trader, 'LONG', -60, '0.01'),
        takeProfit: { trigger: await nearOracle(trader, MARKET, 300) },
        stopLoss: { trigger: await nearOracle(trader, MARKET, -300) },
      })
    ).orThrow()
    const [entry, ...exits] = results
    await trader.orders.cancel((entry as (typeof results)[0]).order.order_hash)
    for (const one of exits)
      expect(stateOf(await trader.orders.waitFor(one, isDone, 60_000))).to.deep.equal([
        'CANCELLED',
        'ENTRY_ENDED',
        0,
      ])
    expect(await exchange.differences()).to.deep.equal([])
  })
})
