/** Accepts the connections of clients. */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Address } from './access.ts'
import { type LinkPorts, type ServedLink, serveLink } from './server.ts'

export interface Links {
  /** States to all clients whether this member is the owner now. */
  announce(): void
  close(): Promise<void>
}

/** A client that does not read its last replies for so long loses them. */
const LINGER_MS = 500

export async function listen<Command>(address: Address, ports: LinkPorts<Command>): Promise<Links> {
  const links = new Set<ServedLink>()
  const server = createServer((socket) => {
    socket.setNoDelay(true)
    const link = serveLink(socket, ports)
    links.add(link)
    socket.once('close', () => links.delete(link))
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
      }, LINGER_MS)
      await closed
      clearTimeout(late)
    },
  }
}
