/** The loop runs its job one run at a time, loses no wake-up, and backs off after failures. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Loop, type LoopOptions } from '../../indexer/loop.ts'

const FOREVER = 1_000_000

function loopOf(run: () => Promise<boolean>, options: Partial<LoopOptions> = {}): Loop {
  const defaults = { intervalMs: FOREVER, retryMs: 1, retryMaxMs: 4, onFailure() {} }
  return new Loop({ run, ...defaults, ...options })
}

/** `reached` resolves at the `count`th call. */
function nth(count: number): { readonly call: () => void; readonly reached: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let calls = 0
  return { call: () => ++calls === count && resolve(), reached: promise }
}

describe('Loop', () => {
  it('when a run has more to do, it runs again at once', async () => {
    const third = nth(3)
    const loop = loopOf(async () => {
      third.call()
      return true
    })
    loop.start()
    await third.reached
    await loop.stop()
  })

  it('when it is woken while it sleeps, it runs without waiting for the interval', async () => {
    const [first, second] = [nth(1), nth(2)]
    const loop = loopOf(async () => {
      first.call()
      second.call()
      return false
    })
    loop.start()
    await first.reached
    await new Promise((resolve) => setImmediate(resolve))
    loop.wake()
    await second.reached
    await loop.stop()
  })

  it('when a run took long, the least time between runs grows with it, up to its bound', async () => {
    const starts: number[] = []
    const fourth = nth(4)
    const loop: Loop = loopOf(
      async () => {
        starts.push(performance.now())
        fourth.call()
        loop.wake()
        await new Promise((resolve) => setTimeout(resolve, 20))
        return false
      },
      { restMs: 5, restRatio: 3, restMaxMs: 1_000 },
    )
    loop.start()
    await fourth.reached
    await loop.stop()
    for (const [at, start] of starts.entries())
      if (at > 0) expect(start - (starts[at - 1] as number)).to.be.at.least(55)
  })

  it('when an urgent wake-up comes during the least time between runs, it runs at once', async () => {
    for (const isEarly of [true, false]) {
      const [second, third] = [nth(2), nth(3)]
      let runs = 0
      const run = async () => {
        second.call()
        third.call()
        if (++runs === 1) loop.wake()
        if (runs === 2 && isEarly) loop.wake(true)
        return runs < 2
      }
      const loop: Loop = loopOf(run, { restMs: FOREVER })
      loop.start()
      await second.reached
      await new Promise((resolve) => setImmediate(resolve))
      if (!isEarly) {
        loop.wake()
        loop.wake(true)
      }
      await third.reached
      await loop.stop()
    }
  })

  it('when an urgent wake-up has caused a run, the least time after it is at most that of urgent runs', async () => {
    const [first, second, third] = [nth(1), nth(2), nth(3)]
    const run = async () => {
      for (const { call } of [first, second, third]) call()
      return false
    }
    const rest = { restMs: 0, restRatio: FOREVER, restMaxMs: FOREVER, urgentRestMaxMs: 0 }
    const loop = loopOf(run, rest)
    loop.start()
    await first.reached
    loop.wake(true)
    await second.reached
    await new Promise((resolve) => setImmediate(resolve))
    loop.wake()
    await third.reached
    await loop.stop()
  })

  it('when an urgent run took long, the time after it grows with it', async () => {
    const [first, third] = [nth(1), nth(3)]
    const starts: number[] = []
    const run = async () => {
      starts.push(performance.now())
      if (starts.length === 2) await new Promise((resolve) => setTimeout(resolve, 20))
      for (const { call } of [first, third]) call()
      return false
    }
    const loop = loopOf(run, { restMs: 0, restRatio: FOREVER, restMaxMs: FOREVER, urgentRestMaxMs: 0 })
    loop.start()
    await first.reached
    loop.wake(true)
    while (starts.length < 2) await new Promise((resolve) => setImmediate(resolve))
    loop.wake()
    await third.reached
    await loop.stop()
    const [, second = 0, last = 0] = starts
    expect(last - second).to.be.at.least(3 * 19)
  })

  it('when it is woken during a run, it runs once more', async () => {
    const second = nth(2)
    const loop: Loop = loopOf(async () => {
      loop.wake()
      second.call()
      return false
    })
    loop.start()
    await second.reached
    await loop.stop()
  })

  it('when runs fail, it reports each failure with a growing pause and continues', async () => {
    const pauses: number[] = []
    const sixth = nth(6)
    const loop = loopOf(
      async () => {
        sixth.call()
        if (pauses.length < 5) throw new Error('away')
        return false
      },
      { onFailure: (_error, pause) => pauses.push(pause) },
    )
    loop.start()
    await sixth.reached
    await loop.stop()
    expect(pauses).to.deep.equal([1, 2, 4, 4, 4])
  })

  it('when it is stopped, it ends the current run and starts no other', async () => {
    const begun = nth(1)
    let ended = 0
    const loop = loopOf(async () => {
      begun.call()
      await new Promise((resolve) => setTimeout(resolve, 20))
      ended++
      return true
    })
    loop.start()
    await begun.reached
    await loop.stop()
    expect(ended).to.equal(1)
  })
})
