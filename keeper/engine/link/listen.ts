/** Accepts the connections of clients. */

import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { TlsSource } from '../../../service/certificates.ts'
import type { Logger } from '../../../service/logger.ts'
import type { Address } from './access.ts'
import { LINK_LIMITS, type LinkPorts, type ServedLink, serveLink } from './server.ts'
import { clientRefusal, followLinkCertificates, serverOptions } from './tls.ts'

export interface Links {
  /** States to all clients whether this member is the owner now. */
  announce(): void
  close(): Promise<void>
}

/** A client that does not read its last replies for so long loses them. */
const LINGER_MS = 500

export interface Listening {
  readonly listen: Address
  /** Null: without TLS, for Unix sockets and the loopback interface. */
  readonly tls: TlsSource | null
}

/** The server, which calls back for each connection that has passed its TLS handshake, if there is one. */
function serverOf(tls: TlsSource | null, logger: Logger, onConnection: (socket: Socket) => void): Server {
  if (tls === null) return createServer(onConnection)
  const server = createTlsServer(serverOptions(tls, LINK_LIMITS.handshakeMs), onConnection)
  server.on('tlsClientError', (error, socket) =>
    logger.warn(
      { ...clientRefusal(error, socket), kind: undefined, from: socket.remoteAddress },
      'connection refused',
    ),
  )
  server.once('close', followLinkCertificates(server, tls))
  return server
}

export async function listen<Command>(
  { listen: address, tls }: Listening,
  ports: LinkPorts<Command>,
): Promise<Links> {
  const links = new Set<ServedLink>()
  /** Sockets of connections, also before their TLS handshake. */
  const sockets = new Set<Socket>()
  const server = serverOf(tls, ports.logger, (socket) => {
    socket.setNoDelay(true)
    const link = serveLink(socket, ports)
    links.add(link)
    socket.once('close', () => links.delete(link))
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  // A process that was killed leaves its socket behind; its owner is the engine of this machine alone.
  if ('path' in address) rmSync(address.path, { force: true })
  const previous = process.umask(0o077)
  server.listen(address)
  process.umask(previous)
  await once(server, 'listening')
  return {
    announce() {
      for (const link of links) link.announce()
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const link of links) link.end()
      const late = setTimeout(() => {
        for (const link of links) link.close()
        for (const socket of sockets) socket.destroy()
      }, LINGER_MS)
      await closed
      clearTimeout(late)
    },
  }
}
