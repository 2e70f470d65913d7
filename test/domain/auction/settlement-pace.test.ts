import { expect } from 'chai'
import { describe, it } from 'mocha'
import { INITIAL_PACE, mayAuction, updatePace } from '../../../domain/auction/settlement-pace.ts'
import type { Millis } from '../../../domain/units.ts'

const at = (value: number) => value as Millis
const backlog = (unsettled: number, queued: number, oldest: number | null = null) => ({
  unsettled,
  queued,
  oldest: oldest === null ? null : at(oldest),
})

describe('mayAuction', () => {
  for (const [name, unsettled, partMs, now, expected] of [
    ['no unsettled part', backlog(0, 10), 1e9, 0, true],
    ['an oldest batch younger than 5 s', backlog(1, 1, 0), 50, 4_999, true],
    ['an oldest batch of 5 s', backlog(1, 1, 0), 50, 5_000, false],
    ['a backlog of 2.5 s', backlog(50, 50, 0), 50, 100, true],
    ['a backlog above 2.5 s', backlog(51, 51, 0), 50, 100, false],
  ] as const) {
    it(`when there is ${name}, the result is ${expected}`, () => {
      expect(mayAuction(unsettled, { partMs, last: null }, at(now))).to.equal(expected)
    })
  }
})

describe('updatePace', () => {
  it('when there is a backlog, it averages the time per part', () => {
    let pace = updatePace(INITIAL_PACE, backlog(10, 10), at(0))
    for (let now = 1; now <= 200; now++) pace = updatePace(pace, backlog(10, 10 + now * 5), at(now * 1000))
    expect(pace.partMs).to.be.closeTo(200, 0.01)
  })

  it('when no part is waiting, it does not count the time', () => {
    const idle = updatePace(INITIAL_PACE, backlog(0, 10), at(0))
    expect(updatePace(idle, backlog(1, 11), at(60_000)).partMs).to.equal(INITIAL_PACE.partMs)
  })

  it('when no part has settled, it waits for the next one', () => {
    const before = updatePace(INITIAL_PACE, backlog(1, 1), at(0))
    const stuck = updatePace(before, backlog(1, 1), at(1000))
    expect(updatePace(stuck, backlog(0, 1), at(2000)).partMs).to.be.closeTo(0.8 * 50 + 0.2 * 2000, 0.01)
  })
})
