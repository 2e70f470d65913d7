import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Command } from '../../../api/commands/command.ts'
import { createCommandQueue } from '../../../api/commands/command-queue.ts'
import { ApiError } from '../../../api/errors.ts'

interface Wanted {
  readonly name: string
  readonly kind: 'place' | 'cancel'
  readonly userId: number
  readonly items: number
}

const command = (name: string, kind: 'place' | 'cancel', userId: number, items = 1): Command =>
  ({ name, kind, userId, items: Array(items).fill({ kind: 'refused' }) }) as unknown as Command

const nameOf = (taken: Command): string => (taken as unknown as Wanted).name

/** A queue whose groups run when the test releases them. */
function heldLane({
  maxGroup = 10,
  maxQueue = 100,
  rest = (_ms: number): Promise<unknown> => Promise.resolve(),
} = {}) {
  const groups: string[][] = []
  const releases: (() => void)[] = []
  const lane = createCommandQueue({
    maxGroup,
    maxQueue,
    rest,
    run(group) {
      groups.push(group.map(nameOf))
      return new Promise((resolve) => releases.push(resolve))
    },
  })
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  return {
    lane,
    groups,
    async next() {
      await turn()
      releases.shift()?.()
      await turn()
    },
  }
}

describe('the command queue', () => {
  it('when a group has ended, it rests for as long as the group took, unless the next group is full', async () => {
    const rests: { readonly ms: number; readonly end: () => void }[] = []
    const rest = (ms: number): Promise<unknown> => new Promise<void>((end) => rests.push({ ms, end }))
    const { lane, groups, next } = heldLane({ maxGroup: 3, rest })
    lane.push(command('a', 'place', 1))
    await next()
    lane.push(command('b', 'place', 2))
    await next()
    expect(groups).to.deep.equal([['a']])
    expect(rests[0]?.ms).to.be.within(0, 50)
    rests[0]?.end()
    await next()
    for (const name of ['c', 'd', 'e', 'f', 'g', 'h']) lane.push(command(name, 'place', 3))
    rests[1]?.end()
    await next()
    expect(rests, 'no rest before a full group').to.have.length(2)
    expect(groups).to.deep.equal([['a'], ['b'], ['c', 'd', 'e'], ['f', 'g', 'h']])
  })

  it('when commands arrive while a group runs, it runs them as one group afterwards', async () => {
    const { lane, groups, next } = heldLane()
    lane.push(command('a', 'place', 1))
    lane.push(command('b', 'place', 2))
    await next()
    expect(groups).to.deep.equal([['a', 'b']])
    await lane.drained()
    expect(lane.waiting).to.equal(0)
  })

  it('when cancels and placements wait, it runs cancels first, but never before an earlier command of the same account', async () => {
    const { lane, groups, next } = heldLane({ maxGroup: 3 })
    lane.push(command('first', 'place', 9))
    await next()
    lane.push(command('held', 'place', 9))
    await next()
    for (const each of [
      command('place 1', 'place', 1),
      command('place 2', 'place', 2),
      command('cancel 1', 'cancel', 1),
      command('cancel 3', 'cancel', 3),
      command('place 3', 'place', 3),
      command('cancel 2', 'cancel', 2),
      command('cancel 4', 'cancel', 4),
    ])
      lane.push(each)
    for (let group = 0; group < 4; group++) await next()
    expect(groups.slice(2)).to.deep.equal([
      ['cancel 3', 'cancel 4', 'place 1'],
      ['cancel 1', 'place 2', 'place 3'],
      ['cancel 2'],
    ])
  })

  it('when the waiting items exceed the group size, it splits them by items and runs a larger command alone', async () => {
    const { lane, groups, next } = heldLane({ maxGroup: 50, maxQueue: 200 })
    lane.push(command('a', 'place', 1, 30))
    lane.push(command('b', 'place', 2, 20))
    lane.push(command('c', 'place', 3, 100))
    lane.push(command('d', 'place', 4, 1))
    for (let group = 0; group < 3; group++) await next()
    expect(groups).to.deep.equal([['a', 'b'], ['c'], ['d']])
  })

  it('when one account floods the queue, the commands of another account are in the next group', async () => {
    for (const kind of ['cancel', 'place'] as const) {
      const { lane, groups, next } = heldLane({ maxGroup: 10, maxQueue: 1_000 })
      lane.push(command('running', kind, 1))
      await next()
      for (let at = 0; at < 200; at++) lane.push(command(`flood ${at}`, kind, 1))
      lane.push(command('other', kind, 2))
      await next()
      expect(groups[1], kind).to.include('other')
      expect(groups[1]?.filter((name) => name !== 'other')).to.deep.equal(
        Array.from({ length: 9 }, (_, at) => `flood ${at}`),
      )
    }
  })

  it('when one account floods the queue, it is rejected before the queue is full for other accounts', async () => {
    const { lane, next } = heldLane({ maxGroup: 10, maxQueue: 100 })
    lane.push(command('running', 'cancel', 1))
    await next()
    const flood = (): void => {
      for (let at = 0; at < 500; at++) lane.push(command('flood', 'cancel', 1))
    }
    expect(flood).to.throw(ApiError)
    expect(lane.waiting).to.equal(50)
    lane.push(command('other', 'cancel', 2))
  })

  it('when accounts cancel all of their orders, few of these commands share a group', async () => {
    const { lane, groups, next } = heldLane({ maxGroup: 100, maxQueue: 1_000 })
    const all = (userId: number): Command =>
      ({
        name: `all ${userId}`,
        kind: 'cancel',
        userId,
        items: [{ kind: 'cancel_all' }],
      }) as unknown as Command
    for (let userId = 1; userId <= 10; userId++) lane.push(all(userId))
    for (let group = 0; group < 4; group++) await next()
    expect(groups.map(({ length }) => length)).to.deep.equal([3, 3, 3, 1])
  })

  it('when the queue is full, it rejects placements, and cancels only at twice the length', async () => {
    const { lane, next } = heldLane({ maxQueue: 10 })
    lane.push(command('running', 'place', 1))
    await next()
    lane.push(command('batch', 'place', 1, 10))
    const refusal = (work: () => void): string => {
      try {
        work()
        return 'taken'
      } catch (error) {
        return (error as ApiError).code
      }
    }
    expect(refusal(() => lane.push(command('too much', 'place', 2)))).to.equal('OVERLOADED')
    expect(refusal(() => lane.push(command('cancel', 'cancel', 2, 10)))).to.equal('taken')
    expect(refusal(() => lane.push(command('cancel', 'cancel', 2)))).to.equal('OVERLOADED')
    expect(new ApiError('OVERLOADED').status).to.equal(503)
    for (let group = 0; group < 3; group++) await next()
    await lane.drained()
  })
})
