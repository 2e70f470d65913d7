import { expect } from 'chai'
import { describe, it } from 'mocha'
import { PARTIAL_SLOTS, PartialSlots } from '../../../domain/settlement/partial-slots.ts'

describe('PartialSlots', () => {
  it('when makers need slots, each gets the lowest index that none of its live orders uses', () => {
    const slots = new PartialSlots(new Map([['alice', new Set([0, 2])]]))
    expect([
      slots.allocate('alice'),
      slots.allocate('alice'),
      slots.allocate('bob'),
      slots.allocate('alice'),
    ]).to.deep.equal([1, 3, 0, 4])
  })

  it('when all indexes are in use, it throws instead of assigning the index that means no slot', () => {
    const all = new Set(Array.from({ length: PARTIAL_SLOTS }, (_, index) => index))
    expect(() => new PartialSlots(new Map([['alice', all]])).allocate('alice')).to.throw()
  })
})
