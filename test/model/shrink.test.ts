import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { shrink } from './shrink.ts'

describe('shrinking', () => {
  it('when a list fails because of some elements, it returns exactly those', () =>
    fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(60), { minLength: 1, maxLength: 40 }),
        fc.array(fc.nat(39), { minLength: 1, maxLength: 4 }),
        async (items, picks) => {
          const needed = new Set(picks.map((pick) => items[pick % items.length]))
          const lengths: number[] = []
          const found = await shrink(items, async (list) => {
            lengths.push(list.length)
            return [...needed].every((item) => list.includes(item as number))
          })
          expect(found).to.deep.equal(items.filter((item) => needed.has(item)))
          expect(lengths.every((length) => length < items.length)).to.equal(true)
        },
      ),
    ))

  it('when the time limit is reached, it returns the shortest failing list so far', async () => {
    let calls = 0
    const found = await shrink(
      [1, 2, 3, 4, 5, 6, 7, 8],
      async (list) => {
        calls++
        return list.includes(8)
      },
      () => calls === 1,
    )
    expect(found).to.deep.equal([5, 6, 7, 8])
  })
})
