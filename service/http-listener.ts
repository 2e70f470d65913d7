/** Creates an HTTP server, with TLS if its listener has certificates, binds it, and closes it together with its connections. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TlsSource } from './certificates.ts'
import type { Listener } from './environment.ts'

export interface HttpListener {
  readonly port: number
  close(): Promise<void>
}

/**
 * Timeouts of servers inside the exchange: a stalled request ends after a few seconds, as on the api's public listener.
 */
export const INTERNAL_SERVER = {
  ...{ requestTimeout: 5_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 },
} as const

/** Connections that are open keep their certificate; new ones get the current one. */
export function followCertificates(server: TlsServer, tls: TlsSource): void {
  const stop = tls.onChange((material) => server.setSecureContext(material))
  server.once('close', stop)
}

export function createHttpServer(
  { tls }: Pick<Listener, 'tls'>,
  options: ServerOptions,
  handle: RequestListener,
): Server {
  if (tls === undefined) return createServer(options, handle)
  const server = createTlsServer(
    { ...options, ...tls.current(), handshakeTimeout: INTERNAL_SERVER.requestTimeout },
    handle,
  )
  followCertificates(server, tls)
  return server as unknown as Server
}

/** Binds the server; resolves when the port is bound. */
export async function bind(server: Server, { host, port }: Listener): Promise<HttpListener> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
