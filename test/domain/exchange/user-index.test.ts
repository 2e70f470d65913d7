/** Users by address, which are indexed by the bytes of their records. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { load, serialize } from '../../../domain/exchange/checkpoint.ts'
import { createState } from '../../../domain/exchange/state.ts'
import type { Address, Millis, UserId } from '../../../domain/units.ts'

const addressOf = (number: number) =>
  `0x${(BigInt(number) * 0x9e3779b97f4a7c15f39cc0605cedc835n).toString(16).padStart(40, '0').slice(-40)}` as Address

describe('users by address', () => {
  it('when a state is loaded, every user is found, and none after its removal', () => {
    const stored = createState(7)
    const ids = Array.from({ length: 3000 }, (_, at) => (at + 1) as UserId)
    for (const userId of ids) stored.users.put({ userId, address: addressOf(userId), createdAt: 1 as Millis })
    for (const state of [stored, load(serialize(stored))]) {
      expect(ids.map((userId) => state.userIds.get(addressOf(userId)))).to.deep.equal(ids)
      expect(state.userIds.get(addressOf(3001))).to.equal(undefined)
      for (const userId of ids) state.users.remove(userId)
      expect(ids.flatMap((userId) => state.userIds.get(addressOf(userId)) ?? [])).to.deep.equal([])
    }
  })
})
