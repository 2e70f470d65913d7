/** The frames of one moment by reader. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Delivery } from '../../../api/live/delivery.ts'
import type { Frame, Reader } from '../../../api/live/ports.ts'

const frame = (topic: string): Frame => ({
  ...{ topic, seq: 1, prevSeq: 0, isConflatable: false },
  text: Buffer.from(topic),
})

const readers = (count: number) => {
  const calls: (readonly Frame[])[][] = Array.from({ length: count }, () => [])
  return {
    calls,
    all: calls.map((own): Reader => ({ send: (frames) => void own.push(frames) })),
  }
}

describe('the frames of one moment', () => {
  it('when readers follow different topics, each gets the frames of its own in one call, in their order', () => {
    const { calls, all } = readers(3)
    const [one, two, three] = all as [Reader, Reader, Reader]
    const delivery = new Delivery()
    delivery.add([one, two], [frame('a'), frame('b')])
    delivery.add([two, three], [frame('c')])
    delivery.send()
    expect(calls.map((own) => own.map((frames) => frames.map(({ topic }) => topic)))).to.deep.equal([
      [['a', 'b']],
      [['a', 'b', 'c']],
      [['c']],
    ])
  })

  it('when readers follow the same topics, they share one list, whatever other readers follow', () => {
    const { calls, all } = readers(4)
    const delivery = new Delivery()
    delivery.add([all[0], all[1], all[2]] as Reader[], [frame('a')])
    delivery.add([all[1], all[3], all[2]] as Reader[], [frame('b')])
    delivery.send()
    expect(calls[1]?.[0]).to.equal(calls[2]?.[0])
    expect(new Set(calls.flat()).size).to.equal(3)
  })
})
