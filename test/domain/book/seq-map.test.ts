import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { SeqMap } from '../../../domain/book/seq-map.ts'
import type { Seq } from '../../../domain/units.ts'

describe('SeqMap', () => {
  it('when any seqs are set and deleted, it returns the same as a plain map', () => {
    const anySeq = fc.oneof(fc.nat({ max: 100 }), fc.integer({ min: 2 ** 52, max: 2 ** 52 + 40 }))
    const anyStep = fc.record({ does: fc.constantFrom('set', 'set', 'delete'), seq: anySeq })
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 200, size: 'max' }), (steps) => {
        const map = new SeqMap<number>()
        const plain = new Map<number, number>()
        for (const [i, { does, seq }] of steps.entries()) {
          if (does === 'set') {
            map.set(seq as Seq, i)
            plain.set(seq, i)
          } else {
            map.delete(seq as Seq)
            plain.delete(seq)
          }
          expect(map.get(seq as Seq)).to.equal(plain.get(seq))
        }
        expect(map.size).to.equal(plain.size)
        expect([...map.values()]).to.have.members([...plain.values()])
        for (const { seq } of steps) expect(map.get(seq as Seq)).to.equal(plain.get(seq))
      }),
    )
  })
})
