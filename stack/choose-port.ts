/** Chooses the ports of the stack: the requested one if it is free. */
import { StackError } from './options.ts'
import { freePort, isFree } from './ports.ts'

/** The requested port, or any free one for 0. Throws if another program listens on it. */
export async function requirePort(port: number): Promise<number> {
  if (port === 0) return freePort()
  if (await isFree(port)) return port
  throw new StackError(
    `port ${port} is in use: stop the program that listens there, or choose another with --port`,
  )
}

/** The preferred port if it is free, otherwise any free one. */
export const preferPort = async (port: number): Promise<number> => ((await isFree(port)) ? port : freePort())
