/** `npm run feed`: replays recorded prices into a running stack, through the recorded source of its price publisher. */
import { resolve } from 'node:path'
import { argumentsOf, positiveNumber, required, text, toggle, withDefault } from '../service/command-line.ts'
import { openAdmin } from './admin.ts'
import { feed } from './feed/run.ts'
import { summaryOf } from './feed/summary.ts'
import { StackError } from './options.ts'

const COMMAND_LINE = {
  command: 'npm run feed --',
  flags: {
    market: required(text('<symbol>', 'market that gets the prices, such as BTC-PERP')),
    prices: required(
      text(
        '<file>',
        'recorded prices, .csv or .csv.gz, with the columns time_ms and price (bars also open, reports also recv_ms)',
      ),
    ),
    speed: withDefault(positiveNumber('speed relative to the recording'), 1),
    minutes: positiveNumber('replay only the first x recorded minutes'),
    absolute: toggle(
      'publish prices as recorded; without it the first one maps to the present oracle price, except in a binary market',
    ),
    stack: withDefault(text('<file>', 'stack.json of the running stack'), '.clearbatch/stack.json'),
  },
} as const

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

try {
  const { market, prices, speed, minutes, absolute, stack } = argumentsOf(COMMAND_LINE)
  const stopping = new AbortController()
  // The stack's own source comes back however the feed ends.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())
  const admin = await openAdmin(resolve(stack))
  try {
    const limit = minutes ?? Number.POSITIVE_INFINITY
    const options = { market, path: resolve(prices), speed, minutes: limit, isAbsolute: absolute }
    print(summaryOf(await feed(admin, options, stopping.signal, print)))
  } finally {
    await admin.close()
  }
} catch (error) {
  const isExpected = error instanceof StackError || error instanceof RangeError
  process.stderr.write(`${isExpected ? error.message : (error as Error).stack}\n`)
  process.exitCode = 1
}
