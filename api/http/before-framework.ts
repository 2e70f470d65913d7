/** Listeners that answer some requests before the framework handles them, with the headers that it has given to an ordinary answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { NearestLimit } from '../ports.ts'
import type { App } from './types.ts'

export type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** `listen` returns the listener that is called first, and calls `route` for every request that it leaves to the listeners before it. */
export function beforeFramework(app: App, listen: (route: Listener) => Listener): void {
  const { server } = app
  const [route] = server.listeners('request') as [Listener]
  server.removeListener('request', route)
  server.prependListener(
    'request',
    listen((request, response) => route.call(server, request, response)),
  )
}

/** Values of the headers of a single request. */
export interface OwnValues extends NearestLimit {
  readonly id: string
}

const OWN_HEADERS = [
  'content-length',
  'x-request-id',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'connection',
]

/** Names and values in turn, in the form of `writeHead`. */
export const ownHeaders = (bytes: number, { id, max, remaining, resetS }: OwnValues): string[] => [
  ...['content-length', String(bytes), 'x-request-id', id],
  ...['ratelimit-limit', String(max), 'ratelimit-remaining', String(remaining)],
  ...['ratelimit-reset', String(resetS)],
]

/** The headers of a reply that other requests for the same have too. */
export const headersOf = (reply: FastifyReply): string[] =>
  Object.entries(reply.getHeaders())
    .filter(([name]) => !OWN_HEADERS.includes(name))
    .flatMap(([name, value]) => [name, String(value)])
