/** The ring of feed rows against a list that is filtered, and the messages that readers which resume share. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Channel } from '../../../api/live/channel.ts'
import { FeedRow } from '../../../api/live/feed-row.ts'
import { Replays } from '../../../api/live/replays.ts'
import { Ring } from '../../../api/live/ring.ts'

const TOPICS = ['a', 'b', 'c']

const rowOf = (seq: number, topics: readonly string[]): FeedRow =>
  new FeedRow({
    ...{ seq, at: 0, batch_id: null, shard: 'm1', shard_epoch: 1, shard_seq: seq },
    ...{ changes: '{}', levels: null, balances: null },
    heads: Object.fromEntries(topics.map((topic) => [topic, seq - 1])),
  } as never)

describe('the ring of feed rows', () => {
  it('when rows are pushed and evicted, it returns the rows of a topic after each position that it covers', () => {
    const rows = fc.array(fc.subarray(TOPICS), { maxLength: 60 })
    fc.assert(
      fc.property(rows, fc.integer({ min: 1, max: 20 }), (topicsOf, most) => {
        const ring = new Ring({ rows: most, bytes: Number.POSITIVE_INFINITY }, 5)
        const all = topicsOf.map((topics, at) => rowOf(6 + at, topics))
        for (const row of all) expect(ring.push(row)).to.equal(true)
        expect(ring.push(rowOf(ring.head + 2, []))).to.equal(false)
        expect(ring.head).to.equal(5 + all.length)
        const floor = ring.head - Math.min(most, all.length)
        for (let seq = 0; seq <= ring.head + 1; seq++) {
          expect(ring.covers(seq), `${seq}`).to.equal(seq >= floor && seq <= ring.head)
          if (!ring.covers(seq)) continue
          for (const topic of TOPICS)
            expect(ring.after(seq, topic)).to.deep.equal(
              all.filter((row) => row.seq > seq && row.concerns(topic)),
            )
        }
      }),
    )
  })
})

describe('readers that resume a topic', () => {
  let encoded = 0
  const topic = (isConflatable: boolean) => {
    const update = (rows: readonly FeedRow[]): object => {
      encoded++
      return { rows: rows.length }
    }
    const channel = { head: 'a', isConflatable, hasBookmark: false, update } as unknown as Channel
    return { key: 'a', name: 'a', channel }
  }
  const rows = [1, 2, 3, 4].map((seq) => rowOf(seq, ['a']))

  it('when they resume from the same position, they share the messages', () => {
    for (const isConflatable of [true, false]) {
      const replays = new Replays()
      encoded = 0
      const first = replays.framesOf(topic(isConflatable), rows)
      const second = replays.framesOf(topic(isConflatable), rows)
      expect(second).to.deep.equal(first)
      expect(encoded).to.equal(isConflatable ? 1 : 4)
      replays.forget()
      replays.framesOf(topic(isConflatable), rows)
      expect(encoded).to.equal(isConflatable ? 2 : 8)
    }
  })

  it('when rows cannot be merged, readers from different positions share the message of each row', () => {
    const replays = new Replays()
    encoded = 0
    replays.framesOf(topic(false), rows)
    expect(replays.framesOf(topic(false), rows.slice(2)).map(({ seq }) => seq)).to.deep.equal([3, 4])
    expect(encoded).to.equal(4)
  })
})
