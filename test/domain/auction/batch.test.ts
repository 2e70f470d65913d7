import { expect } from 'chai'
import { describe, it } from 'mocha'
import { clearAndMatch, MATCH_ROUNDS } from '../../../domain/auction/batch.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { LIQUIDATION_BUFFER } from '../../../domain/positions/margin.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import { type Millis, ONE, type Quote, type Seconds, type Seq, type UserId } from '../../../domain/units.ts'
import { steps, ticks } from '../../support/markets.ts'
import { NO_FUNDING, oracle100, positionAt, resting, roundMarket } from '../support/resting.ts'

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
    ...{ priceProtection: DEFAULT_PRICE_PROTECTION.perpetual, pool: 0n as Quote },
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

/** Margin per step at which a long at 104 is exactly at the liquidation threshold. */
const THRESHOLD = 4n * ONE + 100n * (roundMarket.mmr + LIQUIDATION_BUFFER)

/** A long of `size` at 104 with this margin, whose forced sell of all of it meets `buyers` bids of one step each at 100. */
function liquidation(size: number, buyers: number, margin = BigInt(size) * THRESHOLD - 1n) {
  const forced = { type: 'MARKET', side: 'SHORT', forced: true, account: 1 as UserId } as const
  const book = Book.of([
    resting({ ...forced, seq: 1 as Seq, remaining: steps(size), acceptedAt: 0 as Millis }),
    ...Array.from({ length: buyers }, (_, at) =>
      resting({ seq: (at + 2) as Seq, account: (at + 2) as UserId, remaining: steps(1) }),
    ),
  ])
  const position = positionAt(roundMarket, { size, entry: 104, margin: 0n })
  const held = { ...position, foldedMargin: margin as Quote }
  return {
    ...{ spec: roundMarket, book, fundingIndex: NO_FUNDING, oracle: oracle100 },
    ...{ positions: (account: UserId) => (account === 1 ? held : FLAT), standingSeq: 0 as Seq },
    ...{ asOf: 1_000_000_000 as Millis, priceProtection: DEFAULT_PRICE_PROTECTION.perpetual },
    // The position opposite to the long is left out.
    pool: (10n ** 30n) as Quote,
  }
}

describe('forced orders', () => {
  it('when a batch fills a part of one, the rest stays in the book, however long it waits', () => {
    const { clearing, matched } = clearAndMatch(liquidation(10, 4))
    expect([clearing.volume, clearing.cancels]).to.deep.equal([4, []])
    expect(matched?.positions.get(1 as UserId)?.size).to.equal(6)
  })

  it('when the position is healthy at the price of the batch, it takes no part', () => {
    const { clearing } = clearAndMatch(liquidation(10, 4, 10n * THRESHOLD))
    expect([clearing.volume, clearing.cancels]).to.deep.equal([0, []])
  })

  it('when the grace after a pause of the bank runs, it takes no part unless the account has no equity', () => {
    const volumeAt = (pauseEndsAt: number, margin?: bigint): number =>
      clearAndMatch({ ...liquidation(10, 4, margin), pauseEndsAt: pauseEndsAt as Seconds }).clearing.volume
    expect([volumeAt(999_401), volumeAt(999_400)]).to.deep.equal([0, 4])
    expect(volumeAt(999_401, 40n * ONE)).to.equal(4)
  })

  it('when the roundings of an earlier part make the position healthy, the contract would reject the later part: it takes no part', () => {
    const { refused, matched } = clearAndMatch(liquidation(300, 300))
    expect(refused).to.deep.equal([{ orders: [1], reason: 'NOT_LIQUIDATABLE' }])
    expect(matched).to.equal(null)
    expect(clearAndMatch(liquidation(300, 300, 300n * THRESHOLD - 300n)).matched?.parts).to.have.length(2)
  })
})
