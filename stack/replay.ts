/** `npm run replay`: sends recorded order flow to the running stack through its REST interface. */
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import {
  argumentsOf,
  positiveNumber,
  required,
  text,
  toggle,
  wholeNumber,
  withDefault,
} from '../service/command-line.ts'
import { openAdmin } from './admin.ts'
import { StackError } from './options.ts'
import { report } from './replay/report.ts'
import { replay } from './replay/run.ts'

const COMMAND_LINE = {
  command: 'npm run replay --',
  flags: {
    orders: required(
      text(
        '<file>',
        'recorded order flow, .csv or .csv.gz: LOBSTER messages or a per-order log, recognized by the header',
      ),
    ),
    market: required(text('<symbol>', 'market that receives the orders, such as AAPL-PERP')),
    speed: withDefault(positiveNumber('speed relative to the recording'), 1),
    limit: wholeNumber('send only the first n lines', { least: 1 }),
    minutes: positiveNumber('send only the first x recorded minutes'),
    accounts: withDefault(wholeNumber('number of generated accounts that send the orders', { least: 1 }), 20),
    feed: toggle(
      'copies of book, fills and accounts follow the live feed and are compared with REST at the end',
    ),
    verify: toggle('the proof of every batch is verified against the chain at the end'),
    stack: withDefault(text('<file>', 'stack.json of the running stack'), '.clearbatch/stack.json'),
  },
} as const

function linesOf(path: string): AsyncIterable<string> {
  const file = createReadStream(path)
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file
  return createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
}

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

try {
  const { limit, minutes, ...flags } = argumentsOf(COMMAND_LINE)
  const all = Number.POSITIVE_INFINITY
  const options = { ...flags, limit: limit ?? all, minutes: minutes ?? all }
  const admin = await openAdmin(resolve(flags.stack))
  try {
    const result = await replay(admin, linesOf(flags.orders), options, print)
    print(await report(admin, result))
  } finally {
    await admin.close()
  }
} catch (error) {
  process.stderr.write(`${error instanceof StackError ? error.message : (error as Error).stack}\n`)
  process.exitCode = 1
}
