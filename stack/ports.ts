/** Finds free TCP ports. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the range from which the kernel takes ports for connections and for `listen(0)` (from 32,768 on Linux, from 49,152 elsewhere):
 * otherwise another process could receive a port that was free until its program listens on it, or while that program restarts.
 */
const LOWEST = 20_000
const HIGHEST = 32_000
const TRIES = 100

/** Whether a program can listen on the port of 127.0.0.1 now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

/** A TCP port of 127.0.0.1 on which no program listens at the moment. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = randomInt(LOWEST, HIGHEST)
    if (await isFree(port)) return port
  }
  throw new Error(`no free port among ${TRIES} between ${LOWEST} and ${HIGHEST}`)
}

/** Ports for health and metrics of the exchange's processes. */
export const internalPorts = async () => ({
  api: await freePort(),
  keeper: await freePort(),
  indexer: await freePort(),
  backstop: await freePort(),
  engine: await freePort(),
})
