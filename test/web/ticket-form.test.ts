import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Market } from '../../client/responses.ts'
import {
  emptyForm,
  exitKind,
  exitOrders,
  nearestMakerPrice,
  orderOf,
  type TicketForm,
} from '../../web/trade/ticket-form.ts'

const E18 = 10n ** 18n
const TICK = E18 / 10n

const form = (changes: Partial<TicketForm>): TicketForm => ({ ...emptyForm(20), price: '100', ...changes })
const decimal = (ticks: number): string => (ticks / 10).toFixed(1)

describe('web/trade/ticket-form', () => {
  it('when a post-only price meets the other side, the nearest maker price is one tick beside it, and is itself accepted', () => {
    const ticks = fc.integer({ min: 2, max: 1_000_000 })
    fc.assert(
      fc.property(ticks, ticks, fc.constantFrom('LONG' as const, 'SHORT' as const), (own, other, side) => {
        const best = { bid: BigInt(other) * TICK, ask: BigInt(other) * TICK }
        const wanted = form({ side, postOnly: true, price: decimal(own) })
        const nearest = nearestMakerPrice(wanted, TICK, best)
        const crosses = side === 'LONG' ? own >= other : own <= other
        expect(nearest === null).to.equal(!crosses)
        if (nearest === null) return
        expect(nearest).to.equal((BigInt(other) + (side === 'LONG' ? -1n : 1n)) * TICK)
        const moved = { ...wanted, price: decimal(Number(nearest / TICK)) }
        expect(nearestMakerPrice(moved, TICK, best)).to.equal(null)
      }),
    )
  })

  it('when both exits are given, the take profit is first, each is a reduce-only market order, and triggers are on the grid', () => {
    const market = { market_id: 7, tick_size_e18_raw: String(TICK) } as Market
    const exits = exitOrders(market, 'SHORT', E18, 3, { takeProfit: '110.03', stopLoss: '90' })
    expect(exits.map(({ type, trigger }) => [exitKind(type), trigger])).to.deep.equal([
      ['take_profit', 1101n * TICK],
      ['stop_loss', 900n * TICK],
    ])
    for (const exit of exits)
      expect(exit).to.include({ marketId: 7, side: 'SHORT', quantity: E18, leverage: 3, reduceOnly: true })
  })

  it('when an exit is empty, only the other one is an order', () => {
    const market = { market_id: 7, tick_size_e18_raw: String(TICK) } as Market
    const exits = exitOrders(market, 'LONG', E18, 3, { takeProfit: '', stopLoss: '110' })
    expect(exits.map(({ type }) => type)).to.deep.equal(['STOP_LOSS_MARKET'])
  })

  it('when the other side of the book is empty, no post-only price is too far', () => {
    const none = { bid: null, ask: null }
    expect(nearestMakerPrice(form({ postOnly: true }), TICK, none)).to.equal(null)
  })

  it('when the order is a limit order, it has the flag that was chosen', () => {
    expect(orderOf(1, form({ postOnly: true }), E18))
      .to.include({ postOnly: true })
      .and.not.have.property('timeInForce')
    expect(orderOf(1, form({ isIoc: true }), E18))
      .to.include({ timeInForce: 'ioc' })
      .and.not.have.property('postOnly')
  })

  it('when the type changes to one without flags, the order has none and takes no account of the book', () => {
    const market = form({ type: 'MARKET', postOnly: true, isIoc: true })
    expect(orderOf(1, market, E18)).to.not.have.any.keys('postOnly', 'timeInForce')
    expect(nearestMakerPrice(market, TICK, { bid: 1n, ask: 1n })).to.equal(null)
  })
})
