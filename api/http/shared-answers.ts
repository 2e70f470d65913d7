/**
 * Requests for the same public answer that arrive while it is computed share it: one query and one serialization, however many clients ask.
 * A request that arrives later is computed for itself, so that an answer is never older than the time that computing it took.
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

export function createSharedAnswers(): ShareAnswer {
  const running = new Map<string, Promise<string>>()
  const answer = (request: Reading, reply: Reply, compute: () => Promise<object>): Promise<string> => {
    const serialize = async (): Promise<string> => reply.serialize(await compute()) as string
    // A read with a bookmark takes one of its caller's places among the waiting reads.
    if (hasBookmark(request.query)) return serialize()
    const shared = running.get(request.url) ?? serialize().finally(() => running.delete(request.url))
    running.set(request.url, shared)
    return shared
  }
  return async <Value extends object>(request: Reading, reply: Reply, compute: () => Promise<Value>) => {
    const text = await answer(request, reply, compute)
    reply.type('application/json; charset=utf-8')
    return text as unknown as Value
  }
}

const hasBookmark = (query: unknown): boolean =>
  Object.keys(query as object).some((name) => name.startsWith('read_after'))
