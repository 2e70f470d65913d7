/** Finds free TCP ports. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Below the kernel's range for connections and `listen(0)` (from 32,768 on Linux): otherwise another process could
 * receive the port before its program listens or while it restarts.
 */
const LOWEST = 20_000
const HIGHEST = 32_000
const TRIES = 100
/** A program listens on its port within this time, so that older claims are left over. */
const CLAIM_MS = 300_000
/** Names the ports that processes of this user have chosen, with a file per port: until its program listens, other processes would find a port free, too. */
const CLAIMS = join(tmpdir(), `clearbatch-ports-${process.getuid?.() ?? 0}`)
const claimed = new Set<string>()
process.once('exit', () => {
  for (const path of claimed) rmSync(path, { force: true })
})

const isOld = (path: string): boolean => {
  const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY
  return Date.now() - changed > CLAIM_MS
}

/** False if a process, perhaps this process, has chosen the port recently. */
function claim(port: number): boolean {
  const path = join(CLAIMS, String(port))
  mkdirSync(CLAIMS, { recursive: true, mode: 0o700 })
  if (isOld(path)) rmSync(path, { force: true })
  try {
    writeFileSync(path, '', { flag: 'wx' })
  } catch {
    return false
  }
  claimed.add(path)
  return true
}

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

/** A TCP port of 127.0.0.1 on which no program listens, and which no other call has returned in the last minutes, in any process of this user. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = randomInt(LOWEST, HIGHEST)
    if ((await isFree(port)) && claim(port)) return port
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
