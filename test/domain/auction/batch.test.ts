import { expect } from 'chai'
import { describe, it } from 'mocha'
import { clearAndMatch, MATCH_ROUNDS } from '../../../domain/auction/batch.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import type { Millis, Seq, UserId } from '../../../domain/units.ts'
import { steps, ticks } from '../../support/markets.ts'
import { NO_FUNDING, oracle100, resting, roundMarket } from '../support/resting.ts'

/** A book in which the contract sees buyers at a leverage that its margin requirement does not allow. */
class DisputedBook extends Book {
  override get(seq: Seq): RestingOrder | undefined {
    const order = super.get(seq)
    return order?.side === 'LONG' && order.account > 2 ? { ...order, leverage: 1_000 } : order
  }
}

/** `buyers` that the contract rejects, two traders that it does not, and a seller for all of them. */
function disputed(buyers: number) {
  const book = new DisputedBook()
  const order = (seq: number, account: number, side: 'LONG' | 'SHORT', remaining: number) =>
    book.insert(
      resting({
        seq: seq as Seq,
        account: account as UserId,
        side,
        remaining: steps(remaining),
        limit: ticks(100),
      }),
    )
  for (let at = 0; at < buyers; at++) order(at + 3, at + 3, 'LONG', 2)
  order(1, 1, 'LONG', 1)
  order(2, 2, 'SHORT', 2 * buyers + 1)
  return {
    ...{ spec: roundMarket, book, fundingIndex: NO_FUNDING, oracle: oracle100 },
    ...{ positions: () => FLAT, asOf: 1 as Millis, standingSeq: 0 as Seq },
    priceProtection: DEFAULT_PRICE_PROTECTION.perpetual,
  }
}

describe('orders that the contract would reject', () => {
  it('when a round finds several, all of them are left out of the next round', () => {
    const { refused, matched, clearing, unresolved } = clearAndMatch(disputed(300))
    expect(refused).to.have.length(300)
    expect(new Set(refused.flatMap(({ orders }) => orders)).size).to.equal(300)
    expect(refused[0]).to.deep.equal({ orders: [3], reason: 'UNDER_MARGINED' })
    expect([...(matched?.positions.keys() ?? [])].sort()).to.deep.equal([1, 2])
    expect([clearing.volume, unresolved]).to.deep.equal([1, null])
  })

  it('when more than the rounds of one attempt reveal are rejected, the attempt ends with their accounts and without a batch', () => {
    const input = disputed(8_000)
    let accounts = new Set<UserId>()
    for (let attempts = 1; ; attempts++) {
      const excluded = { accounts, orders: new Set<Seq>() }
      const { matched, unresolved } = clearAndMatch({ ...input, excluded })
      if (unresolved === null) {
        expect([...(matched?.positions.keys() ?? [])].sort()).to.deep.equal([1, 2])
        break
      }
      expect(matched).to.equal(null)
      // A round fills at most 400 orders of each side.
      expect(unresolved.size).to.be.within(MATCH_ROUNDS, 400 * MATCH_ROUNDS)
      accounts = new Set([...accounts, ...unresolved])
      expect(attempts).to.be.at.most(8_000 / (400 * MATCH_ROUNDS))
    }
    expect(accounts.size).to.equal(8_000)
  }).timeout(20_000)
})
