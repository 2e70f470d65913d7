/**
 * Bounds the open HTTP connections of an address, so that no address exhausts the file descriptors or memory of the
 * process. WebSockets have bounds of their own.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import { Counts } from './counts.ts'
import { networkOf } from './network.ts'

export interface ConnectionLimit {
  /** Whether the connection's requests are rejected, because its address has too many connections. */
  isRefused(request: IncomingMessage): boolean
  /** Whether the client already has the maximum number of unanswered requests behind a proxy. */
  isFull(request: IncomingMessage, ip: string): boolean
  /** Counts a request that came through a proxy until it is answered. */
  countUntilAnswered(request: IncomingMessage, response: ServerResponse, ip: string): void
  /** Stops counting a connection that has become a WebSocket. */
  release(socket: Socket): void
  guard(app: FastifyInstance): void
}

export interface ConnectionLimitOptions {
  /** Connections of an IPv4 address, or of a /64 network of IPv6. */
  readonly perAddress: number
  readonly trusts: (address: string, hop: number) => boolean
}

/** Time for a connection above the limit to send its request and read the error. */
const LINGER_MS = 2_000
/** Multiple of the limit from which connections are ended without an answer. */
const HARD_LIMIT = 2

/**
 * A trusted proxy may open any number of connections. Behind it, a client's unanswered requests count instead, because
 * each occupies a connection of the proxy.
 */
export function createConnectionLimit({ perAddress, trusts }: ConnectionLimitOptions): ConnectionLimit {
  const open = new Counts<string>()
  /** Unanswered requests behind trusted proxies, by client. */
  const pending = new Counts<string>()
  const releases = new WeakMap<Socket, () => void>()
  const refused = new WeakSet<Socket>()
  /** Connection of each TLS socket. Requests over TLS name the TLS socket. */
  const below = new WeakMap<Socket, Socket>()
  const connectionOf = (socket: Socket): Socket => below.get(socket) ?? socket
  const isProxy = ({ remoteAddress }: Pick<Socket, 'remoteAddress'>): boolean =>
    remoteAddress !== undefined && trusts(remoteAddress, 0)
  /** `received`: the address's connections, or a proxied client's unanswered requests, including this one. */
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
    isRefused: ({ socket }) => refused.has(connectionOf(socket)),
    isFull,
    countUntilAnswered,
    release: (socket) => releases.get(connectionOf(socket))?.(),
    guard(app) {
      const server = app.server as Server
      server.on('connection', accept)
      if (server instanceof TlsServer) pairSockets(server, below)
      app.addHook('onRequest', async (request, reply) => {
        const { socket } = request.raw
        if (refused.has(connectionOf(socket))) {
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

/** Matches TLS sockets with their connections by remote address, because Node.js does not state the connection. */
function pairSockets(server: TlsServer, below: WeakMap<Socket, Socket>): void {
  const open = new Map<string, Socket>()
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket)
    open.set(name, socket)
    socket.once('close', () => open.get(name) === socket && open.delete(name))
  })
  server.on('secureConnection', (socket) => {
    const connection = open.get(nameOf(socket))
    if (connection !== undefined) below.set(socket, connection)
  })
}

function onceOnly(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
