import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Channel } from '../../../api/live/channel.ts'
import type { FeedRow } from '../../../api/live/feed-row.ts'
import { dueIn, isUrgent, openTopic } from '../../../api/live/live-topic.ts'

const topicWith = (pacing: Channel['pacing']) =>
  openTopic('market.1.book', 'market.1.book', { pacing } as Channel)
const batch = { batchId: 7 } as FeedRow
const other = { batchId: null } as FeedRow

describe('what waits in a topic', () => {
  it('when nothing was sent for 200 ms, it is due', () => {
    const topic = { ...topicWith('outside batches'), sentAt: 1_000 }
    expect(dueIn(topic, 1_199)).to.equal(1)
    expect(dueIn(topic, 1_200)).to.equal(0)
  })

  it('when a batch was sent last, the next batch, 200 ms later, still takes it along', () => {
    const topic = { ...topicWith('outside batches'), sentAt: 1_000, hasSentBatch: true }
    expect(dueIn(topic, 1_200)).to.equal(60)
    expect(dueIn(topic, 1_260)).to.equal(0)
  })

  it('when a batch comes, all is sent at once, unless the topic always waits', () => {
    expect(isUrgent(topicWith('outside batches'), [other, batch])).to.equal(true)
    expect(isUrgent(topicWith('outside batches'), [other])).to.equal(false)
    expect(isUrgent(topicWith('none'), [other])).to.equal(true)
    expect(isUrgent(topicWith('all'), [batch])).to.equal(false)
  })
})
