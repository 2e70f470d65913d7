/**
 * Bounds the open connections of an address for plain HTTP, so that one address cannot use up the process's file descriptors and memory. A
 * trusted proxy may open any number; behind it, the requests of a client that are not answered yet count instead, because each occupies a
 * connection of the proxy. WebSockets have bounds of their own.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import { Counts } from './counts.ts'
import { networkOf } from './network.ts'

export interface ConnectionLimit {
  /** Whether requests of the connection are rejected: its address has too many. */
  isRefused(request: IncomingMessage): boolean
  /** Whether a request would be one too many of those of its client that a proxy waits for. */
  isFull(request: IncomingMessage, ip: string): boolean
  /** Counts a request that came through a proxy until it is answered. */
  countUntilAnswered(request: IncomingMessage, response: ServerResponse, ip: string): void
  /** The connection has become a WebSocket. */
  release(socket: Socket): void
  guard(app: FastifyInstance): void
}

export interface ConnectionLimitOptions {
  /** Connections of an IPv4 address, or of a /64 network of IPv6. */
  readonly perAddress: number
  readonly trusts: (address: string, hop: number) => boolean
}

/** Time in which a connection beyond the limit can send its request and read the error. */
const LINGER_MS = 2_000
/** At this multiple of the limit, connections are ended without an answer. */
const HARD_LIMIT = 2

export function createConnectionLimit({ perAddress, trusts }: ConnectionLimitOptions): ConnectionLimit {
  const open = new Counts<string>()
  /** Requests behind trusted proxies that are not answered yet. */
  const pending = new Counts<string>()
  const releases = new WeakMap<Socket, () => void>()
  const refused = new WeakSet<Socket>()
  const isProxy = ({ remoteAddress }: Pick<Socket, 'remoteAddress'>): boolean =>
    remoteAddress !== undefined && trusts(remoteAddress, 0)
  /** `received`: connections of the address, or of a client behind a proxy its requests that are not answered yet, with this one. */
  const error = (received: number): ApiError => {
    const expected = `at most ${perAddress} connections`
    return new ApiError(
      'TOO_MANY_CONNECTIONS',
      { scope: 'address', field: 'connections', expected, received },
      '1',
    )
  }

  function accept(socket: Socket): void {
    // A connection over a Unix socket has no address.
    if (socket.remoteAddress === undefined || isProxy(socket)) return
    const network = networkOf(socket.remoteAddress)
    open.add(network, 1)
    releases.set(
      socket,
      onceOnly(() => open.add(network, -1)),
    )
    socket.once('close', () => releases.get(socket)?.())
    if (open.of(network) > HARD_LIMIT * perAddress) socket.destroy()
    else if (open.of(network) > perAddress) {
      refused.add(socket)
      const linger = setTimeout(() => socket.destroy(), LINGER_MS)
      socket.once('close', () => clearTimeout(linger))
    }
  }

  const isFull: ConnectionLimit['isFull'] = ({ socket }, ip) =>
    isProxy(socket) && pending.of(networkOf(ip)) >= perAddress

  const countUntilAnswered: ConnectionLimit['countUntilAnswered'] = ({ socket }, response, ip) => {
    if (!isProxy(socket)) return
    const network = networkOf(ip)
    pending.add(network, 1)
    const answered = onceOnly(() => pending.add(network, -1))
    response.once('close', answered).once('finish', answered)
  }

  return {
    isRefused: ({ socket }) => refused.has(socket),
    isFull,
    countUntilAnswered,
    release: (socket) => releases.get(socket)?.(),
    guard(app) {
      const server = app.server as Server
      server.on('connection', accept)
      app.addHook('onRequest', async (request, reply) => {
        const { socket } = request.raw
        if (refused.has(socket)) {
          reply.header('connection', 'close')
          throw error(open.of(networkOf(socket.remoteAddress ?? '')))
        }
        if (request.ws) return
        if (isFull(request.raw, request.ip)) throw error(pending.of(networkOf(request.ip)) + 1)
        countUntilAnswered(request.raw, reply.raw, request.ip)
      })
    },
  }
}

function onceOnly(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
