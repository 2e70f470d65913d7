import { expect } from 'chai'
import { idleShare, processorsAreIdle } from './idle-processors.ts'

describe('test/support/idle-processors', () => {
  it('when a quarter of the ticks between two samples was idle, the share is a quarter', () => {
    expect(idleShare({ idle: 100, total: 1_000 }, { idle: 110, total: 1_040 })).to.equal(0.25)
  })

  it('when no tick has passed, no processor counts as idle', () => {
    expect(idleShare({ idle: 100, total: 1_000 }, { idle: 100, total: 1_000 })).to.equal(0)
  })

  it('when no job waits any more, it resolves with false', async () => {
    expect(await processorsAreIdle(() => true)).to.equal(false)
  })
})
