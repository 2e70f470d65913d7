/** Which of the ports that an operator asks for the stack may have. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { StackError } from './options.ts'
import { freePort } from './ports.ts'

async function isFree(port: number): Promise<boolean> {
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

/** The port asked for, or any free one for 0. Refuses one that something else listens on. */
export async function claimPort(port: number): Promise<number> {
  if (port === 0) return freePort()
  if (await isFree(port)) return port
  throw new StackError(`port ${port} is in use: stop what listens there, or choose another with --port`)
}

/** The port asked for if it is free, else any other. */
export const preferPort = async (port: number): Promise<number> => ((await isFree(port)) ? port : freePort())
