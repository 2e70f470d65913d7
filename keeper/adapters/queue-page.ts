/** Bull Board: the jobs of the relayer lanes, read-only, for operators with the password. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import type { Queue } from 'bullmq'
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import type { HealthOptions } from '../../service/health.ts'
import { isOperator } from '../../service/operator-password.ts'

const PREFIX = '/queues'
const READS = ['GET', 'HEAD']

/** The board's page names a server of fonts. A browser that shows operators' pages asks no other server for anything. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const

export interface QueuePageOptions {
  readonly password: string
  /** Null while the queue is not open. */
  readonly queue: () => Queue | null
}

/** Every route of the board, its files included, needs the password, and nothing but reads is routed. */
export async function createQueuePage(
  options: QueuePageOptions,
): Promise<NonNullable<HealthOptions['page']>> {
  const adapter = new FastifyAdapter()
  adapter.setBasePath(PREFIX)
  const uiConfig = { boardTitle: 'Relayer lanes' }
  const board = createBullBoard({ queues: [], serverAdapter: adapter, options: { uiConfig } })
  let shown: Queue | null = null

  /** The queue is another object after it was opened again. */
  function showOpenQueue(): boolean {
    const open = options.queue()
    if (open !== null && open !== shown)
      board.replaceQueues([new BullMQAdapter(open, { readOnlyMode: true, allowRetries: false })])
    shown = open
    return open !== null
  }

  const app = fastify()
  app.addHook('onRequest', async (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(HEADERS)
    if (!isOperator(request.headers.authorization, options.password))
      return reply
        .code(401)
        .header('www-authenticate', 'Basic realm="Relayer lanes", charset="UTF-8"')
        .send({ message: 'expected the password of the queue page' })
    if (!READS.includes(request.method))
      return reply.code(405).send({ message: 'the queue page is read-only' })
    if (!showOpenQueue()) return reply.code(503).send({ message: 'the queue is not open' })
  })
  app.register(adapter.registerPlugin(), { prefix: PREFIX })
  await app.ready()
  return {
    prefix: PREFIX,
    handle: (request: IncomingMessage, response: ServerResponse) => app.routing(request, response),
  }
}
