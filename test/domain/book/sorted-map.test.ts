import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { SortedMap } from '../../../domain/book/sorted-map.ts'

const anyKey = fc.integer({ min: -600, max: 600 })
const anyStep = fc.oneof(
  { weight: 3, arbitrary: fc.record({ does: fc.constant('set' as const), key: anyKey }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('delete' as const), key: anyKey }) },
)

describe('SortedMap', () => {
  it('when any keys are set and deleted, it iterates as a sorted array', () => {
    const steps = fc.array(anyStep, { maxLength: 2_000, size: 'max' })
    fc.assert(
      fc.property(steps, anyKey, (operations, last) => {
        const map = new SortedMap<string>()
        const plain = new Map<number, string>()
        for (const [i, { does, key }] of operations.entries()) {
          if (does === 'set') {
            map.set(key, `${i}`)
            plain.set(key, `${i}`)
          } else {
            map.delete(key)
            plain.delete(key)
          }
        }
        const sorted = [...plain].sort(([a], [b]) => a - b)
        expect(map.size).to.equal(plain.size)
        expect(map.first()).to.equal(sorted[0]?.[1])
        expect(map.get(last)).to.equal(plain.get(last))
        expect([...map.upTo(last)]).to.deep.equal(
          sorted.filter(([key]) => key <= last).map(([, value]) => value),
        )
      }),
      { numRuns: 60 },
    )
  })

  it('when many keys are added and removed, it keeps them in order', () => {
    const map = new SortedMap<number>()
    const keys = Array.from({ length: 5_000 }, (_, i) => (i * 7_919) % 5_000)
    for (const key of keys) map.set(key, key)
    expect([...map.upTo(Number.POSITIVE_INFINITY)]).to.deep.equal(keys.toSorted((a, b) => a - b))
    for (const key of keys) if (key % 3 !== 0) map.delete(key)
    const rest = keys.filter((key) => key % 3 === 0).sort((a, b) => a - b)
    expect([...map.upTo(Number.POSITIVE_INFINITY)]).to.deep.equal(rest)

    for (let key = 0; key < 2_000; key++) map.delete(key)
    expect(map.first()).to.equal(2_001)
    for (const key of [5, 3, 4]) map.set(key, key)
    const refilled = [3, 4, 5, ...rest.filter((key) => key >= 2_000)]
    expect([...map.upTo(Number.POSITIVE_INFINITY)]).to.deep.equal(refilled)
  })
})
