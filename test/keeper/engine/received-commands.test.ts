/** A barrier follows the replies to all commands before it, and to none after it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { ReceivedCommands } from '../../../keeper/engine/received-commands.ts'

describe('a barrier behind received commands', () => {
  it('when commands are replied in any order, it resolves exactly when all before it are', async () => {
    const steps = fc.array(fc.constantFrom('command', 'barrier', 'reply'), { minLength: 1, maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(steps, fc.infiniteStream(fc.nat()), async (events, choices) => {
        const received = new ReceivedCommands()
        const open = new Map<number, () => void>()
        const barriers: { readonly before: readonly number[]; isPassed: boolean }[] = []
        let next = 0
        for (const event of events) {
          if (event === 'command') {
            const { promise, resolve } = Promise.withResolvers<void>()
            open.set(next++, resolve)
            received.add(promise)
          } else if (event === 'barrier') {
            const barrier = { before: [...open.keys()], isPassed: false }
            barriers.push(barrier)
            void received.replied().then(() => {
              barrier.isPassed = true
            })
          } else if (open.size > 0) {
            const number = [...open.keys()][(choices.next().value as number) % open.size] as number
            open.get(number)?.()
            open.delete(number)
          }
          await nextTurn()
          for (const { before, isPassed } of barriers)
            expect(isPassed).to.equal(before.every((number) => !open.has(number)))
        }
      }),
    )
  })
})
