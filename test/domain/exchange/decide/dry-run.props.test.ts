/** A dry run has the answer of its command, and no effect. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { OrdersCommand } from '../../../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../../../domain/exchange/decide/orders/decide-orders.ts'
import { decideDryRun, readAdmissionInput } from '../../../../domain/exchange/decide/orders/dry-run.ts'
import type { MarketId, UserId } from '../../../../domain/units.ts'
import { e18 } from '../../../support/markets.ts'
import { DecidedExchange, MARKETS, orderOf, userOf } from './support/decided-exchange.ts'

const BALANCES = ['1000', '30', '0.5']

const anyOrder = fc.record({
  by: fc.integer({ min: 1, max: 3 }),
  market: fc.nat(1),
  isLong: fc.boolean(),
  offset: fc.constantFrom(-40, -2, 0, 2, 90),
  quantity: fc.constantFrom(1, 20, 500, 4_000),
  salt: fc.nat(10),
  label: fc.constantFrom<string | null>(null, 'a'),
})

const commandOf = ({ label, ...terms }: typeof anyOrder extends fc.Arbitrary<infer One> ? One : never) =>
  ({
    kind: 'orders',
    userId: userOf(terms.by),
    items: [{ kind: 'place', order: orderOf(terms), clientOrderId: label, absentUpTo: null }],
    isAtomic: false,
    request: null,
  }) satisfies OrdersCommand

describe('dry runs', () => {
  it('when a placement is decided as a dry run, it has no row, and its answer is that of the placement', () => {
    fc.assert(
      fc.property(fc.array(anyOrder, { maxLength: 25 }), (orders) => {
        const exchange = new DecidedExchange(BALANCES)
        for (const order of orders) {
          const command = commandOf(order)
          const { now } = exchange
          const dry = exchange.take(decideDryRun, { ...command, kind: 'dry_run' })
          expect(dry.entries).to.deep.equal([])
          exchange.now = now
          expect(dry.answer).to.deep.equal(exchange.take(decideOrders, command).answer)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('when the input of admission is requested, it needs a user, a market, and a chain that was read recently', () => {
    const exchange = new DecidedExchange(BALANCES)
    const marketId = MARKETS[0]?.marketId as MarketId
    const ask = (user: number, market: number) => {
      const command = {
        kind: 'admission_input',
        userId: user as UserId,
        marketId: market as MarketId,
      } as const
      const { entries, answer } = exchange.take(readAdmissionInput, command)
      expect(entries).to.deep.equal([])
      return answer.ok ? answer.value.available : answer.refusal.code
    }
    expect(ask(1, marketId)).to.equal(e18('1000'))
    expect(ask(9, marketId)).to.equal('USER_NOT_FOUND')
    expect(ask(1, 99)).to.equal('MARKET_NOT_FOUND')
    exchange.chainSeenAt = null
    expect(ask(1, marketId)).to.equal('CHAIN_UNSEEN')
  })
})
