import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clearAndMatch, type MatchedBatch } from '../../../domain/auction/batch.ts'
import { PoolBalance } from '../../../domain/auction/pool-limit.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { openingBasis, type Position, poolShare } from '../../../domain/positions/position.ts'
import { MarketPositions } from '../../../domain/risk/market-positions.ts'
import { settleAccount } from '../../../domain/settlement/settle-account.ts'
import { type Millis, ONE, type Quote, type Seq, type Steps, type UserId } from '../../../domain/units.ts'
import { steps, ticks } from '../../support/markets.ts'
import { type AnyBatch, anyBatch, toInput } from '../support/any-auction.ts'
import { NO_FUNDING, oracle100, resting, roundMarket } from '../support/resting.ts'

const held = (size: number, entry: bigint, margin: bigint): Position => ({
  size: steps(size),
  entryNotional: (BigInt(Math.abs(size)) * entry * ONE) as Quote,
  foldedMargin: (BigInt(Math.abs(size)) * margin * ONE) as Quote,
  leverage: 5,
})

/** The oracle price is 100. Account 1 lost 30 per step beyond its margin of 10, account 2 and 3 won as much. */
function afterGap(closing: readonly (Partial<RestingOrder> & { readonly account: UserId })[], leverage = 10) {
  const positions = new MarketPositions([
    [1 as UserId, held(10, 140n, 10n)],
    [2 as UserId, held(-5, 140n, 10n)],
    [3 as UserId, held(-5, 140n, 10n)],
  ])
  const orders = closing.map((order, at) =>
    resting({
      seq: (at + 1) as Seq,
      side: 'LONG',
      remaining: steps(5),
      limit: ticks(100),
      reduceOnly: true,
      ...order,
    }),
  )
  const seller = resting({
    seq: 90 as Seq,
    account: 4 as UserId,
    side: 'SHORT',
    remaining: steps(15),
    limit: ticks(100),
    leverage,
  })
  return {
    ...{ spec: roundMarket, book: Book.of([...orders, seller]), fundingIndex: NO_FUNDING, oracle: oracle100 },
    ...{
      positions: positions.of,
      pool: positions.pool,
      asOf: 1_000_000_000 as Millis,
      standingSeq: 99 as Seq,
    },
    priceProtection: DEFAULT_PRICE_PROTECTION.perpetual,
  }
}

const filledOf = (matched: MatchedBatch | null) =>
  matched?.clearing.fills.filter(({ side }) => side === 'LONG').map(({ account, fill }) => [account, fill])

describe('payouts of a batch from the pool', () => {
  const two = { account: 2 as UserId }
  const three = { account: 3 as UserId }

  it('when the pool cannot pay every close, the oldest orders are filled and newer orders wait', () => {
    const input = afterGap([three, two])
    // 2 and 3 are worth 250 each, 1 owes 300.
    expect(input.pool).to.equal(200n * ONE)
    const { matched, refused, unresolved } = clearAndMatch({ ...input, pool: (300n * ONE) as Quote })
    expect(filledOf(matched)).to.deep.equal([[3, 5]])
    expect(refused).to.deep.equal([{ orders: [2], reason: 'POOL_SHORT' }])
    expect(unresolved).to.equal(null)
  })

  it('when the pool can pay nothing of it, no batch is matched', () => {
    const { matched, refused } = clearAndMatch(afterGap([three, two]))
    expect(matched).to.equal(null)
    expect(refused.map(({ orders }) => orders)).to.deep.equal([[1], [2]])
  })

  it('when a forced order closes too, it is paid first', () => {
    const forced = { ...two, type: 'MARKET' as const, limit: ticks(0), forced: true }
    const input = afterGap([three, forced, { account: 5 as UserId }])
    const nearlyBankrupt = (account: UserId) =>
      account === 2 ? held(-5, 140n, -38n) : input.positions(account === 5 ? (3 as UserId) : account)
    // 2 is worth 10, 3 and 5 are worth 250 each.
    const { matched } = clearAndMatch({ ...input, positions: nearlyBankrupt, pool: (255n * ONE) as Quote })
    expect(filledOf(matched)).to.deep.equal([[2, 5]])
  })

  it("when the pool suffices with the batch's payments into it, no order waits", () => {
    expect(clearAndMatch({ ...afterGap([three]), pool: (250n * ONE) as Quote }).refused).to.deep.equal([])
    // The seller adds 100 of margin per step.
    const { refused, matched } = clearAndMatch({ ...afterGap([three], 1), pool: 0n as Quote })
    expect([refused.length, filledOf(matched)]).to.deep.equal([0, [[3, 5]]])
  })
})

describe('the balance of the pool', () => {
  const order = (seq: number): RestingOrder => resting({ seq: seq as Seq, reduceOnly: true })
  const account = (number: number): UserId => number as UserId

  it('when a part pays out exactly the pool, no order waits', () => {
    const balance = new PoolBalance(100n as Quote)
    balance.pay(account(1), 100n, [order(1)])
    balance.endPart()
    expect(balance.unpaid().size).to.equal(0)
  })

  it('when an account with a closing order pays in, other accounts are paid without that amount', () => {
    const balance = new PoolBalance(100n as Quote)
    balance.pay(account(1), -50n, [order(1)])
    balance.pay(account(2), 120n, [order(2)])
    balance.pay(account(3), 80n, [order(3)])
    balance.endPart()
    expect([...balance.unpaid()]).to.deep.equal([[2, [2]]])
  })
})

describe('law of the pool', () => {
  /** The positions of a whole market: the last account has the opposite of all other positions. */
  const wholeMarket = (batch: AnyBatch, entry: number): AnyBatch => {
    const others = [...batch.openPositions].slice(0, -1)
    const size = -others.reduce((sum, [, position]) => sum + position.size, 0) as Steps
    const [account] = [...batch.openPositions].at(-1) as [UserId, Position]
    const value = (BigInt(Math.abs(size)) * batch.spec.step * batch.oracle) / ONE
    const entryNotional = ((value * BigInt(entry)) / 100n) as Quote
    const last = {
      size,
      entryNotional,
      foldedMargin: (value / 20n + BigInt(size) * batch.fundingIndex) as Quote,
      leverage: 3,
    }
    return {
      ...batch,
      openPositions: new Map([
        ...others,
        [account, size === 0 ? { ...last, entryNotional: 0n as Quote, foldedMargin: 0n as Quote } : last],
      ]),
    }
  }

  it('when any batch of a whole market is matched, the pool pays every part of it, and Σ shares stays the pool', () => {
    const seen = { short: 0, matched: 0, unresolved: 0 }
    fc.assert(
      fc.property(
        anyBatch({ minOrders: 8, accounts: 6 }),
        fc.integer({ min: 60, max: 140 }),
        (drawn, entry) => {
          const batch = wholeMarket(drawn, entry)
          const positions = new MarketPositions(batch.openPositions)
          if (positions.pool < 0n) return
          const { matched, refused, unresolved } = clearAndMatch({ ...toInput(batch), pool: positions.pool })
          if (unresolved !== null) seen.unresolved++
          if (refused.some(({ reason }) => reason === 'POOL_SHORT')) seen.short++
          if (matched === null) return
          seen.matched++
          let pool: bigint = positions.pool
          const orderOf = new Map(batch.orders.map((order) => [order.seq, order]))
          for (const { fills } of matched.parts) {
            for (const [account, own] of Map.groupBy(fills, (fill) => fill.account)) {
              const { spec, oracle, fundingIndex } = batch
              const { price } = matched.clearing
              const settled = settleAccount(
                spec,
                positions.of(account),
                own.map((fill) => {
                  const { side, limit, leverage } = orderOf.get(fill.seq) as RestingOrder
                  const basis = openingBasis(spec, { side, limit }, price, oracle)
                  return { side, price, steps: fill.fill, takerSteps: fill.taker, leverage, basis }
                }),
                { oracle, fundingIndex, makerFee: spec.makerFee, takerFee: spec.takerFee },
              )
              if (!settled.ok) throw new Error(settled.refusal.code)
              pool -= settled.value.freeDelta + settled.value.fee
              positions.set(account, settled.value.position)
            }
            expect(pool >= 0n, `pool ${pool}`).to.equal(true)
          }
          expect(positions.pool).to.equal(pool)
          expect([...positions].reduce((sum, [, each]) => sum + poolShare(each), 0n)).to.equal(pool)
        },
      ),
      { numRuns: 6_000, seed: 15 },
    )
    expect(seen.short).to.be.greaterThan(20)
    expect(seen.unresolved).to.equal(0)
    expect(seen.matched).to.be.greaterThan(1_000)
  })
})
