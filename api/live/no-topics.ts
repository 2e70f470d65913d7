/** A feed without topics. */
import { ApiError } from '../errors.ts'
import type { Hub } from './ports.ts'
import { topicName } from './topics.ts'

export const NO_TOPICS: Hub = {
  async subscribe(_reader, topic) {
    throw new ApiError('TOPIC_NOT_FOUND', { field: 'topics', received: topicName(topic) })
  },
  unsubscribe() {},
  refresh() {},
  heads: () => ({}),
}
