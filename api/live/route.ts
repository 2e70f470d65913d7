/** The WebSocket of the live feed. */

import type { Socket } from 'node:net'
import websocket, { type WebSocket } from '@fastify/websocket'
import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { Access } from '../http/access.ts'
import { serveDocument } from '../http/static-document.ts'
import type { App } from '../http/types.ts'
import { asyncApi } from './async-api.ts'
import type { Connections } from './connections.ts'
import { LIVE_PATH } from './path.ts'
import { BATCH_MESSAGE_LIMIT } from './schema.ts'

export interface LivePorts {
  readonly config: Pick<Config, 'walletSigning'>
  readonly connections: Connections
  readonly access: Pick<Access, 'spend' | 'charge'>
  /** Counts the connection as a live feed connection from now on. */
  readonly release: (socket: Socket) => void
}

/** Time for a client to answer the close frame; then the connection is destroyed. */
const CLOSE_TIMEOUT_MS = 2_000

/** Call it before the route is added. */
export async function acceptWebSockets(app: App): Promise<void> {
  const options = {
    maxPayload: BATCH_MESSAGE_LIMIT,
    // Compression would cost memory per connection, and compress each frame once per connection.
    perMessageDeflate: false,
    clientTracking: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
    maxFragments: 64,
  }
  await app.register(websocket, {
    options,
    // After a protocol error of the client, the library has already closed the connection.
    errorHandler: (error: Error, socket: WebSocket, request: FastifyRequest) => {
      request.log.debug({ err: error }, 'connection failed')
      if (socket.readyState === socket.OPEN) socket.terminate()
    },
  })
}

export function liveRoute(app: App, { config, connections, access, release }: LivePorts): void {
  serveDocument(app as never, '/v0/asyncapi.json', () => asyncApi(config.walletSigning.publicUrl))
  app.route({
    method: 'GET',
    url: LIVE_PATH,
    exposeHeadRoute: false,
    config: { access: 'optional' },
    schema: { hide: true },
    preHandler: async ({ ws, ip, caller }) => {
      if (!ws) throw new ApiError('UPGRADE_REQUIRED', { field: 'upgrade', expected: 'websocket' })
      connections.check(ip, caller)
    },
    handler: () => {
      throw new ApiError('UPGRADE_REQUIRED')
    },
    wsHandler: (webSocket: WebSocket, { raw, ip, caller, id }: FastifyRequest) => {
      release(raw.socket)
      connections.open({ webSocket, socket: raw.socket, ip, caller, requestId: id, access })
    },
  })
}
