/** Binds an HTTP server to its address, and closes it together with its connections. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
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
