import { expect } from 'chai'
import { describe, it } from 'mocha'
import { PARTIAL_SLOTS, PartialSlots } from '../../../domain/settlement/partial-slots.ts'

describe('PartialSlots', () => {
  it('gives each maker the lowest index that no live order has', () => {
    const slots = new PartialSlots(new Map([['alice', new Set([0, 2])]]))
    expect([
      slots.allocate('alice'),
      slots.allocate('alice'),
      slots.allocate('bob'),
      slots.allocate('alice'),
    ]).to.deep.equal([1, 3, 0, 4])
  })

  it('never gives out the index that means none', () => {
    const all = new Set(Array.from({ length: PARTIAL_SLOTS }, (_, index) => index))
    expect(() => new PartialSlots(new Map([['alice', all]])).allocate('alice')).to.throw()
  })
})
