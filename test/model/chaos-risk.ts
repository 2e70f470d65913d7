/**
 * Liquidations of a running exchange under faults in any order, for longer than a test: each round opens leveraged positions, feeds a part of
 * a crash day, kills processes and the database and forks the chain between its prices, and compares chain, journal, write side,
 * read model and REST. It ends with the number of rounds, and exits with 1 at the first difference.
 *
 *   npm run chaos:risk -- [--seed 1] [--rounds 10] [--prices prices.csv.gz]
 *
 * With a file of recorded prices, the day is that of the file.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readRecording } from '../../keeper/adapters/sources/recording.ts'
import { argumentsOf, text, wholeNumber, withDefault } from '../../service/command-line.ts'
import { startStack } from '../../stack/stack.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { CRASH_DAY, CrashRun } from '../e2e/support/crash-run.ts'
import { waitFor } from '../support/patience.ts'
import { randomOf } from '../support/random.ts'

const { seed, rounds, prices } = argumentsOf({
  command: 'npm run chaos:risk --',
  flags: {
    seed: withDefault(wholeNumber('of the random choices'), 1),
    rounds: withDefault(wholeNumber('rounds', { least: 1 }), 10),
    prices: text('<file>', 'recorded prices'),
  },
})

const PRICES = 12
const LEVERAGES = [3, 5, 8, 10, 12, 16, 20]
const KILL_POINTS = [
  ['keeper', 'after-liquidation-step'],
  ['keeper', 'after-liquidation-action'],
  ['keeper', 'after-batch-commit'],
  ['keeper', 'after-signing'],
  ['keeper', 'after-broadcast'],
  ['indexer', 'after-block-commit'],
  ['indexer', 'before-projection'],
] as const
/** A kill point that the price does not lead to is left at this time. */
const POINT_MS = 5_000

/** As many prices of the recording as the day has, at equal distances, in thousandths of the first one. */
async function readDay(file: string): Promise<readonly number[]> {
  const recording = await readRecording(file)
  const start = recording.at(0).price
  return CRASH_DAY.map((_, at) => {
    const place = Math.floor((at * (recording.length - 1)) / (CRASH_DAY.length - 1))
    return Number((recording.at(place).price * 1_000n) / start)
  })
}

const path = prices === undefined ? CRASH_DAY : await readDay(prices)
const random = randomOf(seed)
const oneOf = <T>(values: readonly T[]): T => values[random(values.length)] as T

/** `move` publishes the next price. */
type Fault = (run: CrashRun, move: () => Promise<void>) => Promise<void>

async function killAtPoint(process: Managed, point: string, move: () => Promise<void>): Promise<void> {
  await process.restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
  const died = process.nextEnd()
  await process.ready()
  const restart = async (): Promise<void> => {
    const timeout = new Promise((resolve) => setTimeout(resolve, POINT_MS, 'not reached'))
    if ((await Promise.race([died, timeout])) === 'not reached') await process.restart('SIGKILL')
    await process.ready()
  }
  await Promise.all([move(), restart()])
}

const FAULTS: readonly { readonly name: string; readonly weight: number; readonly inject: Fault }[] = [
  { name: 'none', weight: 5, inject: (_, move) => move() },
  {
    name: 'kill at a point',
    weight: 3,
    inject: (run, move) => {
      const [name, point] = oneOf(KILL_POINTS)
      return killAtPoint(run.stack[name], point, move)
    },
  },
  {
    name: 'kill',
    weight: 3,
    inject: async (run, move) => {
      const process = run.stack[oneOf(['keeper', 'indexer', 'api'] as const)]
      const restart = async (): Promise<void> => {
        await process.restart('SIGKILL')
        await process.ready()
      }
      await Promise.all([move(), restart()])
    },
  },
  {
    name: 'database',
    weight: 1,
    inject: async (run, move) => {
      await move()
      await run.restartDatabase()
    },
  },
  {
    name: 'fork',
    weight: 3,
    inject: async (run, move) => {
      await Promise.all([move(), run.fork(1 + random(8))])
    },
  },
]
const CHOICES = FAULTS.flatMap((fault) => Array.from({ length: fault.weight }, () => fault))

/** Some positions at the first price, some bids below it, a part of the path, and the first price again. */
async function play(run: CrashRun): Promise<string[]> {
  await run.price(1_000)
  for (let account = 0; account < 5; account++) {
    const quantity = `${(1 + random(20)) / 10}`
    await run.open({ marketId: 1, account, against: 7 + random(2), quantity, leverage: oneOf(LEVERAGES) })
  }
  for (const account of [5, 6]) await run.bid(account, 999 - random(150), `${(1 + random(10)) / 10}`)
  const first = random(path.length - PRICES)
  const counts = new Map<string, number>()
  for (const thousandths of path.slice(first, first + PRICES)) {
    const { name, inject } = oneOf(CHOICES)
    counts.set(name, (counts.get(name) ?? 0) + 1)
    await inject(run, () => run.price(thousandths))
  }
  await run.price(1_000)
  for (const account of [5, 6]) await run.trader(account).orders.cancelAll({ marketId: 1 })
  await waitFor(
    () => run.running(),
    (running) => running === 0,
    { budgetMs: 60_000 },
  ).catch(() => {})
  const left = await run.running()
  console.log(JSON.stringify({ ...Object.fromEntries(counts), first, kinds: [...(await run.kinds(1))] }))
  return [...(left === 0 ? [] : [`${left} liquidations run at the first price`]), ...(await run.problems())]
}

const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-chaos-'))
const stack = await startStack({ port: 0, dataDir, fresh: false, bots: false, backstop: true }, () => {})
let problems: readonly string[] = []
let round = 0
try {
  const run = await CrashRun.open(stack)
  while (round < rounds && problems.length === 0) {
    round++
    problems = await play(run)
  }
  await run.release()
  run.close()
} finally {
  await stack.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
for (const problem of problems) console.error(`seed ${seed}, round ${round}: ${problem}`)
console.log(`${round} rounds, ${problems.length} differences`)
process.exitCode = problems.length === 0 ? 0 : 1
