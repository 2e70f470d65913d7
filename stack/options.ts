/** Parses the flags of `npm start`. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface StackOptions {
  readonly port: number
  readonly dataDir: string
  /** Delete the saved state first. */
  readonly fresh: boolean
  readonly bots: boolean
}

/** An error of which the command prints only the message, without a stack trace. */
export class StackError extends Error {
  override readonly name = 'StackError'
}

export const USAGE = `npm start -- [options]
  --port <n>         port of the REST interface (default 8080; 0 for any free port)
  --data-dir <path>  folder of the state (default .clearbatch)
  --fresh            delete the saved state first
  --no-bots          start without demo traders`

export function readOptions(args: readonly string[]): StackOptions {
  const { values } = parse(args)
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new StackError(`--port must be a port number from 0 to 65535, not ${values.port}\n\n${USAGE}`)
  }
  return { port, dataDir: resolve(values['data-dir']), fresh: values.fresh, bots: !values['no-bots'] }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '8080' },
        'data-dir': { type: 'string', default: '.clearbatch' },
        fresh: { type: 'boolean', default: false },
        'no-bots': { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw new StackError(`${(error as Error).message}\n\n${USAGE}`)
  }
}
