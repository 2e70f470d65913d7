import { expect } from 'chai'
import { describe, it } from 'mocha'
import { FLAT, marginOf, type Position } from '../../../domain/positions/position.ts'
import { type PartFill, type QueuedFills, replayParts } from '../../../domain/settlement/replay-parts.ts'
import type { UserId } from '../../../domain/units.ts'
import { index, perpetual, price, rate, steps, ticks } from '../../support/markets.ts'

const [buyer, seller] = [1, 2] as [UserId, UserId]

const fill = (account: UserId, side: 'LONG' | 'SHORT', count: number): PartFill => ({
  ...{ account, side, leverage: 10, limit: ticks(1000) },
  ...{ steps: steps(count), takerSteps: steps(0) },
})
const deal = (count: number): readonly PartFill[] => [
  fill(buyer, 'LONG', count),
  fill(seller, 'SHORT', count),
]
/** A part that settles at 1,000 ticks, 100 USDM, on the funding index. */
const part = (fundingIndex: bigint, fills: readonly PartFill[]): QueuedFills => ({
  terms: {
    ...{ price: ticks(1000), oracle: price('100'), makerFee: rate('0'), takerFee: rate('0') },
    fundingIndex: index(fundingIndex),
  },
  fills,
})
const flat = (): Position => FLAT

describe('replayParts', () => {
  it('when parts follow each other, each starts from the positions that the one before leaves', () => {
    const once = replayParts(perpetual, [part(0n, deal(30))], flat)
    const twice = replayParts(perpetual, [part(0n, deal(10)), part(0n, deal(20))], flat)
    expect(twice).to.deep.equal(once)
    expect(once?.get(buyer)).to.include({ size: 30, leverage: 10 })
    expect(once?.get(seller)).to.include({ size: -30, leverage: 10 })
  })

  it('when accounts have mined positions, it starts from them, and returns no account without a fill', () => {
    const open = replayParts(perpetual, [part(0n, deal(30))], flat)
    const mined = (account: UserId): Position => open?.get(account) ?? FLAT
    const closed = replayParts(perpetual, [part(0n, [fill(buyer, 'SHORT', 30)])], mined)
    expect([...(closed?.keys() ?? [])]).to.deep.equal([buyer])
    expect(closed?.get(buyer)).to.deep.equal({ ...FLAT, leverage: 10 })
  })

  it('when the parts settle on another funding index, the margins are the same at that index', () => {
    const [at0, at5] = [0n, 5n].map((at) => replayParts(perpetual, [part(at, deal(30))], flat)?.get(buyer))
    expect(at5?.foldedMargin).to.not.equal(at0?.foldedMargin)
    expect(marginOf(at5 as Position, index(5n))).to.equal(marginOf(at0 as Position, index(0n)))
  })

  it('when funding between two parts leaves an account too little margin for the second, it returns null', () => {
    const open = part(0n, deal(30))
    const opened = replayParts(perpetual, [open], flat)?.get(buyer) ?? FLAT
    const paid = (opened.foldedMargin * 9n) / 10n / 30n
    expect(replayParts(perpetual, [open, part(0n, deal(1))], flat)).to.not.equal(null)
    expect(replayParts(perpetual, [open, part(paid, deal(1))], flat)).to.equal(null)
  })
})
