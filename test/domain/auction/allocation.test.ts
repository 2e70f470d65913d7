import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { proRata } from '../../../domain/auction/allocation.ts'
import { InvariantError } from '../../../domain/invariant.ts'
import type { Seq, Steps } from '../../../domain/units.ts'

const claims = (sizes: readonly number[], seqs?: readonly number[]) =>
  sizes.map((steps, i) => ({ order: { seq: (seqs?.[i] ?? i) as Seq }, steps: steps as Steps }))

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/** Claims and a volume: small, with many equal claims, or so large that products exceed the safe integers. */
const anyRationing = fc
  .oneof(
    fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 15 }),
    fc.array(fc.integer({ min: 1, max: 2 ** 48 }), { minLength: 1, maxLength: 15 }),
  )
  .chain((sizes) => fc.tuple(fc.constant(sizes), fc.integer({ min: 0, max: sum(sizes) })))

describe('proRata', () => {
  it('law 7: when any volume is allocated, shares add up to it, each within a step of its exact share and at most its claim', () => {
    fc.assert(
      fc.property(anyRationing, ([sizes, volume]) => {
        const shares = proRata(claims(sizes), volume as Steps)
        const total = BigInt(sum(sizes))
        expect(sum(shares)).to.equal(volume)
        for (const [i, share] of shares.entries()) {
          const exact = BigInt(volume) * BigInt(sizes[i] as number)
          const off = BigInt(share) * total - exact
          expect(off < total && -off < total, 'within a step').to.equal(true)
          expect(share).to.be.within(0, sizes[i] as number)
        }
      }),
    )
  })

  it('law 7: when steps remain after rounding, they go by remainder, then seq, exactly at any size', () => {
    fc.assert(
      fc.property(anyRationing, ([sizes, volume]) => {
        const total = BigInt(sum(sizes))
        const rows = sizes.map((size, seq) => {
          const exact = BigInt(volume) * BigInt(size)
          return { seq, share: Number(exact / total), remainder: exact % total }
        })
        const leftOver = volume - sum(rows.map(({ share }) => share))
        const order = rows.toSorted((a, b) => Number(b.remainder - a.remainder) || a.seq - b.seq)
        for (const row of order.slice(0, leftOver)) row.share++
        expect(proRata(claims(sizes), volume as Steps)).to.deep.equal(rows.map(({ share }) => share))
      }),
      { numRuns: 300 },
    )
  })

  it('law 7: when the volume equals the claims, every claim fills completely, and above them it throws', () => {
    expect(proRata(claims([3, 5]), 8 as Steps)).to.deep.equal([3, 5])
    expect(() => proRata(claims([3, 5]), 9 as Steps)).to.throw(InvariantError)
  })

  it('law 8: when claims are equal, they differ by at most one step, and the earlier never gets less', () => {
    fc.assert(
      fc.property(anyRationing, ([sizes, volume]) => {
        const shares = proRata(claims(sizes), volume as Steps)
        for (const [i, size] of sizes.entries()) {
          for (const [j, other] of sizes.entries()) {
            if (size !== other || i >= j) continue
            expect((shares[i] as number) - (shares[j] as number)).to.be.within(0, 1)
          }
        }
      }),
    )
  })

  it('law 9: when claims are given in any sequence, the shares are the same', () => {
    const shuffled = anyRationing.chain(([sizes, volume]) => {
      const places = [...sizes.keys()]
      return fc.tuple(
        fc.constant(sizes),
        fc.constant(volume),
        fc.shuffledSubarray(places, { minLength: places.length }),
      )
    })
    fc.assert(
      fc.property(shuffled, ([sizes, volume, places]) => {
        const straight = proRata(claims(sizes), volume as Steps)
        const mixed = claims(
          places.map((place) => sizes[place] as number),
          places,
        )
        expect(proRata(mixed, volume as Steps)).to.deep.equal(places.map((place) => straight[place]))
      }),
    )
  })

  it('law 13: when an order is split into k equal orders, their total differs by less than k + 1 steps', () => {
    const split = fc.tuple(
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 2, max: 6 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
    )
    fc.assert(
      fc.property(split, ([others, part, k, share]) => {
        const volume = Math.floor(share * (sum(others) + part * k)) as Steps
        const whole = proRata(claims([part * k, ...others]), volume)[0] as number
        const parts = proRata(claims([...Array<number>(k).fill(part), ...others]), volume).slice(0, k)
        expect(Math.abs(sum(parts) - whole)).to.be.lessThan(k + 1)
      }),
    )
  })

  it('when a step remains, it goes to the claim with the largest remainder, or to the earliest of equal claims', () => {
    expect(proRata(claims([35, 15]), 30 as Steps)).to.deep.equal([21, 9])
    expect(proRata(claims([3, 3, 3]), 5 as Steps)).to.deep.equal([2, 2, 1])
    expect(proRata(claims([3, 3, 3], [9, 8, 7]), 5 as Steps)).to.deep.equal([1, 2, 2])
    expect(proRata(claims([7, 2, 1]), 5 as Steps), 'remainders 5, 0, 5').to.deep.equal([4, 1, 0])
  })
})
