import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  advanceFunding,
  changesFunding,
  type FundingState,
  fundingIndexAt,
  NO_FUNDING,
} from '../../../domain/prices/funding-state.ts'
import type { FundingIndex, HourlyFunding, Millis } from '../../../domain/units.ts'

const millis = (value: number): Millis => value as Millis
const hourly = (value: bigint): HourlyFunding => value as HourlyFunding

/** A rate of one wei per millisecond, valid from 1,000 to 5,000. */
const running: FundingState = {
  index: 7n as FundingIndex,
  asOf: millis(1000),
  running: { rate: hourly(3_600_000n), validFrom: millis(1000), validUntil: millis(5000) },
}
const at = (state: FundingState, asOf: number) => advanceFunding(state, millis(asOf), null)

const anyTime = fc.integer({ min: 0, max: 20 }).map((at) => millis(at * 500))
const anyRate = fc.constantFrom(0n, 1n, -1n, 3_600_000n, -7_777_777n).map(hourly)
const anyState = fc.record({
  index: fc.constantFrom(0n, 5n, -9n).map((index) => index as FundingIndex),
  asOf: anyTime,
  running: fc.record({ rate: anyRate, validFrom: anyTime, validUntil: anyTime }),
})
const anySets = fc.option(fc.record({ rate: anyRate, validUntil: anyTime }))

describe('changesFunding', () => {
  it('when a valid rate accrued, the action changes funding, also if the amount was truncated to 0', () => {
    expect(changesFunding(running, at(running, 2000))).to.equal(true)
    const slow = { ...running, running: { ...running.running, rate: hourly(1n) } }
    expect(at(slow, 2000).index).to.equal(slow.index)
    expect(changesFunding(slow, at(slow, 2000))).to.equal(true)
  })

  it('when nothing accrued, the action changes nothing', () => {
    expect(changesFunding(NO_FUNDING, at(NO_FUNDING, 2000))).to.equal(false)
    expect(changesFunding(running, at(running, 1000))).to.equal(false)
    const over = at(running, 5000)
    expect(changesFunding(over, at(over, 9000))).to.equal(false)
    const ahead = { ...running, asOf: millis(0) }
    expect(changesFunding(ahead, at(ahead, 1000))).to.equal(false)
    const none = { ...running, running: { ...running.running, rate: hourly(0n) } }
    expect(changesFunding(none, at(none, 2000))).to.equal(false)
  })

  it('when the action sets a rate, it changes funding, also to the rate that runs', () => {
    const { rate, validUntil } = running.running
    expect(changesFunding(running, advanceFunding(running, millis(1000), { rate, validUntil }))).to.equal(
      true,
    )
  })

  it('when the chain has another index than accrues, the action changes funding', () => {
    expect(changesFunding(NO_FUNDING, { ...NO_FUNDING, index: 1n as FundingIndex })).to.equal(true)
  })

  it('when an action changes nothing, every later index is the same without it', () => {
    fc.assert(
      fc.property(
        anyState,
        anyTime,
        anySets,
        fc.array(fc.tuple(anyTime, anySets), { maxLength: 3 }),
        (before, elapsed, sets, actions) => {
          let dropped: FundingState = before
          let passed = advanceFunding(before, millis(before.asOf + elapsed), sets)
          if (changesFunding(before, passed)) return
          let time: number = passed.asOf
          for (const [later, next] of actions) {
            time += later
            expect(fundingIndexAt(passed, millis(time))).to.equal(fundingIndexAt(dropped, millis(time)))
            dropped = advanceFunding(dropped, millis(time), next)
            passed = advanceFunding(passed, millis(time), next)
          }
        },
      ),
    )
  })
})
