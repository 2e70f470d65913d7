/**
 * Requests for the same public answer that arrive while it is computed share it: one query and one serialization, however many clients ask.
 * A request that arrives later is computed for itself, unless the answer is in such demand that computing each would hold up the process:
 * then an answer of the last moment serves them.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'

type Reading = Pick<FastifyRequest, 'url' | 'query'>
type Reply = Pick<FastifyReply, 'serialize' | 'type'>

/**
 * Answers with what `compute` returns, or with what it returns to an earlier request for the same path and query. The result is serialized
 * already, and typed as the value for the route's handler.
 */
export type ShareAnswer = <Value extends object>(
  request: Reading,
  reply: Reply,
  compute: () => Promise<Value>,
) => Promise<Value>

/** An answer is in demand when it was requested more often than this in the present or the last window. */
export const DEMAND = 10
export const WINDOW_MS = 100
/** Age up to which an answer in demand serves further requests, from the start of computing it. */
export const FRESH_MS = 25
/** Paths and queries are the clients' choice: beyond this number all are forgotten. */
const MOST = 1_000

interface Known {
  text: Promise<string>
  startedAt: number
  isRunning: boolean
  windowStart: number
  requests: number
  wasInDemand: boolean
}

/** `now`: milliseconds of a clock that never steps. */
export function createSharedAnswers(now: () => number = () => performance.now()): ShareAnswer {
  const answers = new Map<string, Known>()

  function known(url: string, at: number): Known {
    const found = answers.get(url)
    if (found !== undefined) return found
    if (answers.size >= MOST) answers.clear()
    const fresh: Known = {
      ...{ text: Promise.resolve(''), startedAt: Number.NEGATIVE_INFINITY, isRunning: false },
      ...{ windowStart: at, requests: 0, wasInDemand: false },
    }
    answers.set(url, fresh)
    return fresh
  }

  async function run(answer: Known, serialize: () => Promise<string>): Promise<string> {
    try {
      return await serialize()
    } catch (error) {
      answer.startedAt = Number.NEGATIVE_INFINITY
      throw error
    } finally {
      answer.isRunning = false
    }
  }

  function answerTo(url: string, serialize: () => Promise<string>): Promise<string> {
    const at = now()
    const answer = known(url, at)
    const isServed = isInDemand(answer, at) && at - answer.startedAt <= FRESH_MS
    if (answer.isRunning || isServed) return answer.text
    answer.startedAt = at
    answer.isRunning = true
    answer.text = run(answer, serialize)
    return answer.text
  }

  return async <Value extends object>(request: Reading, reply: Reply, compute: () => Promise<Value>) => {
    const serialize = async (): Promise<string> => reply.serialize(await compute()) as string
    // A read with a bookmark takes one of its caller's places among the waiting reads.
    const text = hasBookmark(request.query) ? serialize() : answerTo(request.url, serialize)
    reply.type('application/json; charset=utf-8')
    return (await text) as unknown as Value
  }
}

/** Counts the request. */
function isInDemand(answer: Known, at: number): boolean {
  const age = at - answer.windowStart
  if (age >= WINDOW_MS) {
    answer.wasInDemand = age < 2 * WINDOW_MS && answer.requests > DEMAND
    answer.windowStart = at
    answer.requests = 0
  }
  answer.requests++
  return answer.wasInDemand || answer.requests > DEMAND
}

const hasBookmark = (query: unknown): boolean =>
  Object.keys(query as object).some((name) => name.startsWith('read_after'))
