/** The messages of a topic as an async iterator. */
import { ClearbatchError, CODES } from '../errors.ts'
import type { TopicMessage } from './messages.ts'

export type MessageStream = AsyncGenerator<TopicMessage, void, void>

/** Maximum unread messages. */
const MOST_WAITING = 10_000

/** `subscribe` adds a listener and returns a function that removes it. It is called at the first read. */
export async function* messageStream(
  subscribe: (listener: (message: TopicMessage) => void) => () => void,
): MessageStream {
  let waiting: TopicMessage[] = []
  let wake = () => {}
  const leave = subscribe((message) => {
    if (waiting.length <= MOST_WAITING) waiting.push(message)
    wake()
  })
  try {
    for (;;) {
      if (waiting.length === 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (waiting.length > MOST_WAITING) throw tooSlow()
      const messages = waiting
      waiting = []
      yield* messages
    }
  } finally {
    leave()
  }
}

const tooSlow = (): ClearbatchError =>
  new ClearbatchError(`more than ${MOST_WAITING} messages wait to be read; read them faster`, {
    code: CODES.slow,
    outcome: null,
  })
