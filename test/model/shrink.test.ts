import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { shrink } from './shrink.ts'

describe('shrinking', () => {
  it('finds exactly what makes a list fail, wherever it stands', () =>
    fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(60), { minLength: 1, maxLength: 40 }),
        fc.array(fc.nat(39), { minLength: 1, maxLength: 4 }),
        async (items, picks) => {
          const needed = new Set(picks.map((pick) => items[pick % items.length]))
          const asked: number[] = []
          const found = await shrink(items, async (list) => {
            asked.push(list.length)
            return [...needed].every((item) => list.includes(item as number))
          })
          expect(found).to.deep.equal(items.filter((item) => needed.has(item)))
          expect(asked.every((length) => length < items.length)).to.equal(true)
        },
      ),
    ))

  it('gives what it has when it is over', async () => {
    let asked = 0
    const found = await shrink(
      [1, 2, 3, 4, 5, 6, 7, 8],
      async (list) => {
        asked++
        return list.includes(8)
      },
      () => asked === 1,
    )
    expect(found).to.deep.equal([5, 6, 7, 8])
  })
})
