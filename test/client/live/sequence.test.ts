import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { TopicMessage } from '../../../client/live/messages.ts'
import { TopicSequence } from '../../../client/live/sequence.ts'

const started = (epoch: number, resumed: boolean) => ({ seq: 0, data: { epoch, resumed } })
const message = (type: TopicMessage['type'], seq: number, prev_seq: number): TopicMessage => ({
  ...{ type, topic: 'markets', seq, prev_seq, ts: '', data: {} },
  ...(type === 'snapshot' && { epoch: 1 }),
})

describe('the sequence of a topic', () => {
  const begun = (): TopicSequence => {
    const sequence = new TopicSequence()
    sequence.subscribed(started(1, false))
    sequence.take(message('snapshot', 5, 0))
    return sequence
  }

  it('when updates follow each other after a snapshot, each is applied, and the position is that of the last', () => {
    const sequence = begun()
    expect([sequence.take(message('update', 8, 5)), sequence.position]).to.deep.equal(['apply', '1:8'])
  })

  it('when an update is missing or repeated, it is a gap, and the position stays', () => {
    const sequence = begun()
    for (const [seq, previous] of [
      [9, 8],
      [5, 4],
    ] as const)
      expect([sequence.take(message('update', seq, previous)), sequence.position]).to.deep.equal([
        'gap',
        '1:5',
      ])
  })

  it('when the subscription begins again, messages are ignored until it has begun', () => {
    const sequence = begun()
    sequence.restart()
    expect([sequence.take(message('update', 8, 5)), sequence.isCurrent]).to.deep.equal(['ignore', false])
    expect(sequence.subscribed(started(1, true))).to.equal('apply')
    expect(sequence.take(message('update', 8, 5))).to.equal('apply')
  })

  it('when the exchange resumes in another epoch, or without a position, it is a gap that needs a snapshot', () => {
    for (const sequence of [begun(), new TopicSequence()]) {
      sequence.restart()
      expect([sequence.subscribed(started(2, true)), sequence.position]).to.deep.equal(['gap', null])
    }
  })

  it('when a heartbeat names a later message than the last, the topic lags', () => {
    expect([5, 6].map((head) => begun().lags(head))).to.deep.equal([false, true])
  })
})
