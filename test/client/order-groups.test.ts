import { expect } from 'chai'
import { describe, it } from 'mocha'
import { toE18 } from '../../client/decimals.ts'
import { bracketOrders, scaleOrders } from '../../client/order-groups.ts'
import { closingOrders } from '../../client/positions.ts'
import type { Position } from '../../client/responses.ts'

const entry = {
  marketId: 1,
  side: 'LONG',
  price: '100',
  quantity: '2',
  leverage: 3,
  clientOrderId: 'a',
} as const
const grid = { tick_size_e18_raw: '100000000000000000', step_size_e18_raw: '10000000000000000' }

describe('client/order-groups', () => {
  it('given an entry with both exits, the bracket has reduce-only orders of the other side with the same size', () => {
    const bracket = { entry, takeProfit: { trigger: '120', price: '119' }, stopLoss: { trigger: '90' } }
    const orders = bracketOrders(bracket, 7)
    const exit = { marketId: 1, bracketId: 7, side: 'SHORT', quantity: '2', leverage: 3, reduceOnly: true }
    expect(orders).to.deep.equal([
      { ...entry, bracketId: 7 },
      { ...exit, type: 'TAKE_PROFIT_LIMIT', trigger: '120', price: '119', clientOrderId: 'a-tp' },
      { ...exit, type: 'STOP_LOSS_MARKET', trigger: '90', clientOrderId: 'a-sl' },
    ])
  })

  it('when a bracket has no number, a random one links its orders; its own number stays', () => {
    const stopLoss = { trigger: '90' }
    const [first, second] = bracketOrders({ entry, stopLoss })
    expect(first?.bracketId).to.be.within(1, 2 ** 32 - 1)
    expect(second?.bracketId).to.equal(first?.bracketId)
    const own = bracketOrders({ entry: { ...entry, bracketId: 5 }, stopLoss }).map(
      ({ bracketId }) => bracketId,
    )
    expect(own).to.deep.equal([5, 5])
  })

  it('when an exit is on the wrong side, the bracket throws and names the valid side', () => {
    const stopLoss = { trigger: '101' }
    expect(() => bracketOrders({ entry, stopLoss })).to.throw(
      'must be below the entry price 100; received 101',
    )
    const short = { ...entry, side: 'SHORT' } as const
    expect(() => bracketOrders({ entry: short, takeProfit: { trigger: '101' } })).to.throw(
      'takeProfit.trigger of a SHORT entry must be below',
    )
    const { price: _, ...market } = entry
    expect(() =>
      bracketOrders({ entry: market, takeProfit: { trigger: 90 }, stopLoss: { trigger: 95 } }),
    ).to.throw('must be above stopLoss.trigger 95; received 90')
    expect(() => bracketOrders({ entry })).to.throw('received neither')
  })

  it('when a ladder is scaled, its prices are on the grid within the range and its quantities add up', () => {
    const { price: _, quantity: __, ...terms } = entry
    for (const side of ['LONG', 'SHORT'] as const)
      for (const count of [2, 3, 7, 50]) {
        const orders = scaleOrders({ ...terms, side, from: '99.9', to: '95', quantity: '1.23', count }, grid)
        expect(orders).to.have.length(count)
        const total = orders.reduce((sum, { quantity }) => sum + toE18(quantity), 0n)
        expect(total).to.equal(toE18('1.23'))
        const prices = orders.map(({ price }) => toE18(price as string))
        expect([prices[0], prices.at(-1)]).to.deep.equal([toE18('99.9'), toE18('95')])
        for (const price of prices) expect(price % toE18('0.1')).to.equal(0n)
        expect(orders.map(({ clientOrderId }) => clientOrderId)[1]).to.equal('a-2')
      }
  })

  it('when a ladder cannot be built, it throws and names the field', () => {
    const { price: _, ...terms } = entry
    const scale = { ...terms, from: 99, to: 95, count: 5 }
    expect(() => scaleOrders({ ...scale, count: 51 }, grid)).to.throw(
      'count must be a whole number from 2 to 50',
    )
    expect(() => scaleOrders({ ...scale, to: 99 }, grid)).to.throw('from and to must differ')
    expect(() => scaleOrders({ ...scale, quantity: '0.04' }, grid)).to.throw('quantity must be at least 0.05')
  })
})

describe('client/positions', () => {
  it('given positions with unsettled fills, each closing order has the sum, and flat positions get no order', () => {
    const position = (market_id: number, size: string, pending: string) =>
      ({
        market_id,
        leverage: 4,
        size_e18_raw: String(toE18(size)),
        pending_size_e18_raw: String(toE18(pending)),
      }) as Position
    const orders = closingOrders([position(1, '1.5', '-0.5'), position(2, '1', '-1'), position(3, '-2', '0')])
    const terms = { leverage: 4, reduceOnly: true }
    expect(orders).to.deep.equal([
      { ...terms, marketId: 1, side: 'SHORT', quantity: '1' },
      { ...terms, marketId: 3, side: 'LONG', quantity: '2' },
    ])
  })
})
