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

describe('a market after settlement has stopped for a while', () => {
  const TURN_MS = 200

  /** Milliseconds without auctions once settlement goes on, and those until the parts that had waited are settled. */
  function waitAfter(stallMs: number, partMs: number): { readonly waits: number; readonly drains: number } {
    let [queued, settled, pace] = [0, 0, INITIAL_PACE]
    const matched: number[] = []
    let ready = 0
    let waits = 0
    let drains = 0
    const stallAt = 60_000
    for (let now = 0; now < stallAt + stallMs + 60_000; now += TURN_MS) {
      const isStalled = now >= stallAt && now < stallAt + stallMs
      ready = isStalled ? 0 : ready + TURN_MS / partMs
      for (; ready >= 1 && settled < queued; ready--) settled++
      if (settled === queued) ready = 0
      const state = backlog(queued - settled, queued, matched[settled] ?? null)
      pace = updatePace(pace, state, at(now))
      const isOver = now >= stallAt + stallMs
      if (isOver && drains === 0 && (matched[settled] ?? Infinity) > stallAt + stallMs)
        drains = now - stallAt - stallMs
      if (mayAuction(state, pace, at(now))) matched[queued++] = now
      else if (isOver) waits += TURN_MS
    }
    return { waits, drains }
  }

  for (const stallMs of [500, 1_000, 2_000, 4_000, 8_000, 20_000])
    for (const partMs of [10, 25, 50, 100])
      it(`when it stopped for ${stallMs} ms and a part takes ${partMs} ms, auctions resume before the parts that had waited are settled`, () => {
        const { waits, drains } = waitAfter(stallMs, partMs)
        expect(waits).to.be.at.most(drains + TURN_MS)
        expect(waits).to.be.at.most(2_600)
      })
})
