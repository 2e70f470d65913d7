/** Finds free TCP ports. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A TCP port of 127.0.0.1 on which no program listens at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Ports for health and metrics of the exchange's processes. */
export const internalPorts = async () => ({
  api: await freePort(),
  keeper: await freePort(),
  indexer: await freePort(),
  backstop: await freePort(),
  engine: await freePort(),
})
