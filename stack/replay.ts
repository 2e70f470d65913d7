/** `npm run replay`: sends recorded order flow to the running stack through its REST interface. */
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { createGunzip } from 'node:zlib'
import { openAdmin } from './admin.ts'
import { StackError } from './options.ts'
import { report } from './replay/report.ts'
import { replay } from './replay/run.ts'

const USAGE = `npm run replay -- --orders <file> --market <symbol> [options]
  --orders <file>   recorded order flow, .csv or .csv.gz: LOBSTER messages or a per-order log, recognized by the header
  --market <symbol> market that receives the orders, such as AAPL-PERP
  --speed <x>       speed relative to the recording (default 1)
  --limit <n>       send only the first n lines
  --minutes <n>     send only the first n recorded minutes
  --accounts <n>    number of generated accounts that send the orders (default 20)
  --stack <file>    stack.json of the running stack (default .clearbatch/stack.json)`

interface ReplayFlags {
  readonly orders: string
  readonly market: string
  readonly speed: number
  readonly limit: number
  readonly minutes: number
  readonly accounts: number
  readonly stack: string
}

function readFlags(args: readonly string[]): ReplayFlags {
  const text = { type: 'string' } as const
  const options = {
    orders: text,
    market: text,
    speed: text,
    limit: text,
    minutes: text,
    accounts: text,
    stack: text,
  }
  const { values } = parseArgs({ args: [...args], options })
  if (values.orders === undefined || values.market === undefined) throw new StackError(USAGE)
  const positive = (name: 'speed' | 'limit' | 'minutes' | 'accounts', fallback: number): number => {
    const value = Number(values[name] ?? fallback)
    if (!(value > 0))
      throw new StackError(`--${name} must be a positive number, not ${values[name]}\n\n${USAGE}`)
    return value
  }
  return {
    orders: values.orders,
    market: values.market,
    speed: positive('speed', 1),
    limit: positive('limit', Number.POSITIVE_INFINITY),
    minutes: positive('minutes', Number.POSITIVE_INFINITY),
    accounts: positive('accounts', 20),
    stack: resolve(values.stack ?? '.clearbatch/stack.json'),
  }
}

function linesOf(path: string): AsyncIterable<string> {
  const file = createReadStream(path)
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file
  return createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
}

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

try {
  const flags = readFlags(process.argv.slice(2))
  const admin = await openAdmin(flags.stack)
  try {
    const result = await replay(admin, linesOf(flags.orders), flags, print)
    print(await report(admin, result))
  } finally {
    await admin.close()
  }
} catch (error) {
  process.stderr.write(`${error instanceof StackError ? error.message : (error as Error).stack}\n`)
  process.exitCode = 1
}
