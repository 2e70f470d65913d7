/** The order in which the engine decides waiting commands. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  COMMAND_CLASSES,
  type CommandClass,
  createFairQueue,
  type Queued,
  SHARES,
} from '../../../keeper/engine/fair-queue.ts'

interface Item extends Queued {
  readonly name: string
}

const item = (of: CommandClass, name: string, account: number | null = 1): Item => ({
  class: of,
  account,
  deadline: Number.POSITIVE_INFINITY,
  name,
})

const namesOf = (count: number, take: () => Item | null): (string | undefined)[] =>
  Array.from({ length: count }, () => take()?.name)

describe('the queue of the engine', () => {
  it('when several accounts wait in one class, they take turns, and each keeps its order', () => {
    const queue = createFairQueue<Item>()
    for (const name of ['a1', 'a2', 'a3']) queue.push(item('placement', name, 1), 0)
    for (const name of ['b1', 'b2']) queue.push(item('placement', name, 2), 0)
    expect(namesOf(6, queue.take)).to.deep.equal(['a1', 'b1', 'a2', 'b2', 'a3', undefined])
  })

  it('when an account cancels behind its own placement, the cancel waits for the placement', () => {
    const queue = createFairQueue<Item>()
    queue.push(item('placement', 'place', 1), 0)
    queue.push(item('cancel', 'cancel', 1), 0)
    queue.push(item('cancel', 'cancel of another account', 2), 0)
    expect(namesOf(3, queue.take)).to.deep.equal(['cancel of another account', 'place', 'cancel'])
  })

  it('when a placement is put back, a cancel of its account that waits already is decided behind it', () => {
    const queue = createFairQueue<Item>()
    queue.push(item('cancel', 'cancel', 1), 0)
    queue.pushFront(item('placement', 'place', 1))
    queue.push(item('cancel', 'cancel of another account', 2), 0)
    expect(namesOf(4, queue.take)).to.deep.equal(['cancel of another account', 'place', 'cancel', undefined])
  })

  it('when the cancels have used more time than their share, a placement waits for the earlier cancel of its account', () => {
    const queue = createFairQueue<Item>()
    queue.charge('cancel', 10)
    queue.push(item('placement', 'place of another account', 2), 0)
    queue.push(item('cancel', 'cancel all', 1), 0)
    queue.push(item('placement', 'place', 1), 0)
    expect(namesOf(3, queue.take)).to.deep.equal(['place of another account', 'cancel all', 'place'])
  })

  it('when commands of several accounts and classes come and go, each account keeps its order', () => {
    const step = fc.oneof(
      fc.record({ of: fc.constantFrom(...COMMAND_CLASSES), account: fc.constantFrom(1, 2, null) }),
      fc.record({ ms: fc.nat(20) }),
      fc.constant('put back' as const),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = createFairQueue<Item>()
        const taken: Item[] = []
        let count = 0
        for (const next of steps) {
          if (next === 'put back') {
            const last = taken.pop()
            if (last !== undefined) queue.pushFront(last)
          } else if ('ms' in next) {
            const last = queue.take()
            if (last === null) continue
            queue.charge(last.class, next.ms)
            taken.push(last)
          } else queue.push(item(next.of, String(count++), next.account), 0)
        }
        for (let last = queue.take(); last !== null; last = queue.take()) taken.push(last)
        expect([taken.length, queue.size]).to.deep.equal([count, 0])
        for (const account of [1, 2]) {
          const order = taken.flatMap((own) => (own.account === account ? [Number(own.name)] : []))
          expect(order).to.deep.equal([...order].sort((a, b) => a - b))
        }
      }),
    )
  })

  it('when all classes wait, each gets its share of the time, whatever its commands cost', () => {
    const queue = createFairQueue<Item>()
    const costs: Record<CommandClass, number> = { chain: 5, auction: 3, cancel: 0.1, placement: 0.5 }
    const used: Record<CommandClass, number> = { chain: 0, auction: 0, cancel: 0, placement: 0 }
    const names = Object.keys(costs) as CommandClass[]
    for (let total = 0; total < 2000; ) {
      for (const name of names) while (queue.waiting(name) < 2) queue.push(item(name, name, null), 0)
      const { class: of } = queue.take() as Item
      queue.charge(of, costs[of])
      used[of] += costs[of]
      total += costs[of]
    }
    const all = Object.values(used).reduce((sum, ms) => sum + ms, 0)
    for (const name of names) expect(used[name] / all, name).to.be.closeTo(SHARES[name], 0.02)
  })

  it('when a class has been idle, it does not make up for that time', () => {
    const queue = createFairQueue<Item>()
    queue.push(item('placement', 'p0', null), 0)
    for (let at = 1; at <= 100; at++) {
      queue.push(item('placement', `p${at}`, null), 0)
      queue.take()
      queue.charge('placement', 10)
    }
    for (let at = 0; at < 10; at++) queue.push(item('chain', `c${at}`, null), 0)
    const order: string[] = []
    for (let at = 0; at < 4; at++) {
      const next = queue.take() as Item
      order.push(next.class)
      queue.charge(next.class, 10)
      queue.push(item('placement', 'more', null), 0)
    }
    expect(order).to.include('placement')
  })

  it('when a placement could not be decided before its deadline, it is refused; the chain never is', () => {
    const queue = createFairQueue<Item>()
    for (let at = 0; at < 200; at++) queue.charge('placement', 2)
    for (let at = 0; at < 200; at++) queue.charge('chain', 2)
    const at = (of: CommandClass): boolean => queue.push({ ...item(of, of), deadline: 50 }, 0)
    let accepted = 0
    while (at('placement')) accepted += 1
    expect(accepted).to.be.within(1, 10)
    for (let count = 0; count < 100; count++) expect(at('chain')).to.equal(true)
  })
})
