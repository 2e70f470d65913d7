/** How a client estimates the clock of a member of the engine. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { PeerClock } from '../../../keeper/engine/link/peer-clock.ts'

describe('the estimated clock of a member', () => {
  it('when its statements are late by any delays, an estimate is never ahead, and behind by the least recent delay', () => {
    const statements = fc.array(fc.record({ after: fc.nat(50_000), delay: fc.nat(5_000) }), { minLength: 1 })
    fc.assert(
      fc.property(fc.integer(), statements, (offset, delays) => {
        let now = 0
        const clock = new PeerClock(() => now)
        for (const { after, delay } of delays) {
          now += after
          clock.heard(now + offset - delay)
          const estimate = clock.timeOf(now)
          expect(estimate).to.be.within(now + offset - delay, now + offset)
        }
      }),
    )
  })

  it('when the member becomes slower, the estimate follows it within two minutes', () => {
    let now = 0
    const clock = new PeerClock(() => now)
    clock.heard(1_000)
    for (now = 250; now <= 121_000; now += 250) clock.heard(now + 900)
    expect(clock.timeOf(now)).to.equal(now + 900)
  })
})
