import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import { LaneWatch } from '../../../keeper/relayer/lane-watch.ts'

const STALL_MS = 60_000

describe('the progress of relayer lanes', () => {
  let now: number
  let watch: LaneWatch
  beforeEach(() => {
    now = 1_000_000
    watch = new LaneWatch({ clock: { now: () => now as Millis }, stallMs: STALL_MS })
    watch.started('m1', 1)
    watch.started('relay', 1)
  })

  const later = (ms: number): void => {
    now += ms
  }

  it('when a lane is idle, it is never stalled', () => {
    watch.passed('m1', 'idle')
    later(10 * STALL_MS)
    expect(watch.stalled()).to.deep.equal([])
  })

  it('when a lane waits for the whole time without a receipt, it is stalled until one arrives', () => {
    watch.passed('m1', 'waiting')
    later(STALL_MS - 1)
    watch.passed('m1', 'waiting')
    expect(watch.stalled()).to.deep.equal([])
    later(1)
    expect(watch.stalled()).to.deep.equal(['m1'])
    watch.ended('m1', true)
    expect(watch.stalled()).to.deep.equal([])
  })

  it('when transactions of a settlement lane only revert for the whole time, it is stalled, though it is idle in between', () => {
    watch.ended('m1', false)
    watch.passed('m1', 'idle')
    later(STALL_MS)
    expect(watch.stalled()).to.deep.equal([])
    watch.ended('m1', false)
    watch.passed('m1', 'idle')
    expect(watch.stalled()).to.deep.equal(['m1'])
    watch.ended('m1', true)
    expect(watch.stalled()).to.deep.equal([])
  })

  it("when owners' requests revert, their lane is not stalled", () => {
    watch.ended('relay', false)
    later(STALL_MS)
    watch.ended('relay', false)
    expect(watch.stalled()).to.deep.equal([])
  })

  it('when another process runs the lane, it is not stalled here, and a new lease starts from zero', () => {
    let isRun = true
    watch.add('m1', () => isRun)
    watch.passed('m1', 'waiting')
    later(STALL_MS)
    expect(watch.stalled()).to.deep.equal(['m1'])
    isRun = false
    expect(watch.stalled()).to.deep.equal([])
    isRun = true
    watch.started('m1', 1)
    expect(watch.stalled()).to.deep.equal(['m1'])
    watch.started('m1', 2)
    expect(watch.stalled()).to.deep.equal([])
  })
})
