import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Address, Millis } from '../../../domain/units.ts'
import { createSignerSets, type SignerSet, type SignerSets } from '../../../keeper/prices/signer-sets.ts'
import { SILENT_LOGGER } from '../support/market-fixture.ts'
import { FEED_ID } from './publisher-fixture.ts'

const NOW = 1_800_000_000_000
const setOf = (name: string, threshold = 1): SignerSet => ({
  signers: new Set([`0x${name.repeat(40)}` as Address]),
  threshold,
})
const [OLD, NEW] = [setOf('a'), setOf('b')]

describe('the signers that the oracle accepts', () => {
  let clock: { value: number; now(): Millis }
  /** When the new signers become valid. */
  let changesAt: number
  let isDown: boolean
  let reads: number
  let sets: SignerSets

  beforeEach(() => {
    clock = {
      value: NOW,
      now() {
        return this.value as Millis
      },
    }
    changesAt = Number.POSITIVE_INFINITY
    isDown = false
    reads = 0
    sets = createSignerSets({
      clock,
      logger: SILENT_LOGGER,
      async read(_, observedAt) {
        reads++
        if (isDown) throw new Error('no answer')
        return observedAt < changesAt ? OLD : NEW
      },
    })
  })

  const refresh = () => sets.refresh([FEED_ID])
  const at = (time: number) => sets.at(FEED_ID, time as Millis)

  it('when they have not been read, none are known; once read, they hold for two minutes and are read again after one', async () => {
    expect(at(NOW)).to.equal(null)
    await refresh()
    expect([at(NOW), at(NOW + 120_000), at(NOW + 120_001), at(NOW - 1)]).to.deep.equal([OLD, OLD, null, null])
    clock.value += 59_000
    await refresh()
    expect(reads).to.equal(2)
    clock.value += 2_000
    await refresh()
    expect(at(NOW + 180_000)).to.equal(OLD)
  })

  it('when they change, no report has signers of the other side, and the pause is at most three seconds', async () => {
    changesAt = NOW + 90_500
    let silent = 0
    for (let time = NOW; time < NOW + 100_000; time += 100) {
      clock.value = time
      if (time % 1_000 === 0) await refresh()
      const set = at(time)
      if (set === null) silent += 100
      else expect(set).to.equal(time < changesAt ? OLD : NEW)
    }
    expect(silent).to.be.within(100, 3_000)
  })

  it('when the node does not answer, what is known holds as long as it would, and is read again once it answers', async () => {
    await refresh()
    isDown = true
    clock.value += 119_000
    await refresh()
    expect(at(clock.value)).to.equal(OLD)
    clock.value += 2_000
    await refresh()
    expect(at(clock.value)).to.equal(null)
    isDown = false
    await refresh()
    expect(at(clock.value)).to.equal(OLD)
  })

  it('when only the threshold changes, it is a change', async () => {
    sets = createSignerSets({
      clock,
      logger: SILENT_LOGGER,
      read: async (_, observedAt) => (observedAt > NOW ? setOf('a', 2) : OLD),
    })
    await refresh()
    expect(at(NOW)).to.equal(null)
    clock.value += 1
    await refresh()
    expect(at(clock.value)).to.deep.equal(setOf('a', 2))
  })
})
