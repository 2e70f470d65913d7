/** The connections of the api: bounds of slow clients, and answers to what Node.js cannot parse as a request. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TlsSource } from '../../service/certificates.ts'
import { followCertificates } from '../../service/http-listener.ts'
import type { ConnectionLimits } from '../config.ts'
import { ApiError, errorBody } from '../errors.ts'
import { LIVE_PATH } from '../live/path.ts'
import { createConnectionLimit } from './connection-limit.ts'
import { malformed } from './errors.ts'
import type { App } from './types.ts'

/** Interval at which the server looks for requests beyond their bound: a request can exceed it by this much. */
const CHECK_MS = 1_000
/** Time in which a client can read an error after which its connection is destroyed; the reset of a destroyed connection discards unread bytes. */
const LINGER_MS = 1_000

/** `trusts`: whether the address at this distance from the api is a proxy. */
export function createConnections(
  { requestTimeoutMs, idleMs, perAddress }: ConnectionLimits,
  trusts: (address: string, hop: number) => boolean,
  nextId: () => string,
  tls: TlsSource | undefined,
  isStopping: () => boolean,
) {
  const limit = createConnectionLimit({ perAddress, trusts })
  const newest: NewestRequests = new WeakMap()
  const answer = unparsableAnswerer(newest, nextId)
  return {
    /** Options of the fastify constructor. */
    serverOptions: {
      requestTimeout: requestTimeoutMs,
      connectionTimeout: idleMs,
      // Fastify's own answer is not an error of the catalogue; `rejectOnStop` sends one.
      return503OnClosing: false,
      [tls === undefined ? 'http' : 'https']: {
        ...(tls && { ...tls.current(), handshakeTimeout: requestTimeoutMs }),
        // Node.js applies the greater of both timeouts to bodies; the default for headers is 60 s.
        headersTimeout: requestTimeoutMs,
        connectionsCheckingInterval: CHECK_MS,
        // Node.js would answer a request without Host with an empty body; `guard` rejects it.
        requireHostHeader: false,
        // On other paths the header Upgrade is ignored, as HTTP allows.
        shouldUpgradeCallback: ({ url }: IncomingMessage) => isLivePath(url ?? ''),
      },
      clientErrorHandler: answer,
    },
    limit,
    guard(app: App): void {
      const { server } = app
      if (tls !== undefined) followCertificates(server as TlsServer, tls)
      server.on('request', (request, response) => newest.set(request.socket, { request, response }))
      // Without a listener, Node.js destroys the connection.
      server.on('connect', (_request, socket) =>
        answer(new Error('CONNECT is not supported'), socket as Socket),
      )
      // An unknown Expect header is ignored instead of answered with 417.
      server.on('checkExpectation', (request, response) => server.emit('request', request, response))
      app.addHook('onRequest', async ({ raw: { httpVersion, headers } }) => {
        if (httpVersion === '1.1' && headers.host === undefined)
          throw new ApiError('MALFORMED_REQUEST', { field: 'host', expected: 'a Host header' })
      })
      limit.guard(app as never)
      rejectOnStop(app, isStopping)
      rejectAfterAnswer(app)
    },
  }
}

const isLivePath = (url: string): boolean => url.split('?')[0]?.replace(/\/$/, '') === LIVE_PATH

interface HttpExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** The newest request of each connection. */
type NewestRequests = WeakMap<Socket, HttpExchange>

/**
 * Whether the client would match an error to the unreadable request. False if the client could take it for the answer
 * to an earlier request, or for a second answer to one request.
 */
function isAnswerable(newest: HttpExchange | undefined): boolean {
  if (newest === undefined) return true
  const { request, response } = newest
  if (request.complete) return response.writableFinished
  // The response has a socket once all earlier responses of the connection are sent.
  return response.socket !== null && !response.headersSent
}

/**
 * Answers malformed requests with 400 and late requests with 408, then closes the connection. It closes without an
 * answer if the client could match the error to another request.
 */
const unparsableAnswerer =
  (newest: NewestRequests, nextId: () => string) =>
  (error: Error & { readonly code?: string }, socket: Socket): void => {
    // Bytes that follow an answered error.
    if (socket.writableEnded) return
    if (!socket.writable || !isAnswerable(newest.get(socket))) return void socket.destroy(error)
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    socket.end(rawAnswer(isLate ? new ApiError('REQUEST_TIMEOUT') : malformed(error), nextId()))
    const linger = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => clearTimeout(linger))
  }

function rawAnswer(error: ApiError, requestId: string): string {
  // The request counts as a command: its method may be unknown.
  const body = JSON.stringify(errorBody(error.beforeReading(), requestId, false))
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `X-Request-Id: ${requestId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

/**
 * Rejects requests that arrive after `unparsableAnswerer` has answered, because that answer promises that nothing was
 * executed. The second hook is for bodies that end after the first.
 */
function rejectAfterAnswer(app: App): void {
  const reject = async ({ raw }: { raw: IncomingMessage }): Promise<void> => {
    if (raw.socket.writableEnded) throw new ApiError('REQUEST_TIMEOUT')
  }
  app.addHook('onRequest', reject)
  app.addHook('preHandler', reject)
}

/**
 * A request that arrives once the server closes is rejected. A response sent during a stop ends its connection: a proxy opens its next one to
 * another api, and no idle connection delays the stop.
 */
function rejectOnStop(app: App, isStopping: () => boolean): void {
  let isClosing = false
  app.addHook('preClose', (done) => {
    isClosing = true
    done()
  })
  app.addHook('onRequest', async () => {
    if (isClosing) throw new ApiError('SHUTTING_DOWN', {}, '1')
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (isStopping()) reply.header('connection', 'close')
    done(null, payload)
  })
}
