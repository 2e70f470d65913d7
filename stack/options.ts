/** The flags of `npm start`. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface StackOptions {
  readonly port: number
  readonly dataDir: string
  /** Throw the old state away first. */
  readonly fresh: boolean
  readonly bots: boolean
}

/** An error whose message is all that the operator needs to see. */
export class StackError extends Error {
  override readonly name = 'StackError'
}

export const USAGE = `npm start -- [options]
  --port <n>         port of the REST interface (default 8080; 0 for any free one)
  --data-dir <path>  where the state is kept (default .clearbatch)
  --fresh            delete that state first
  --no-bots          without the demo traders`

export function readOptions(args: readonly string[]): StackOptions {
  const { values } = parse(args)
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new StackError(`--port must be a port number, not ${values.port}\n\n${USAGE}`)
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
