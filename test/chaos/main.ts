/**
 * A seeded campaign of faults under continuous trading. Prints one line for each run, and ends with status 1 at the first violation, whose
 * seed, trace, logs and repeating command it prints. `README.md` has the laws, `--table` prints the faults.
 *
 *   npm run chaos -- [--runs 20] [--seed 1] [--exchange machine] [--run 7] [--recording flow.csv.gz]
 */
import { argumentsOf, oneOf, text, toggle, wholeNumber, withDefault } from '../../service/command-line.ts'
import { randomOf } from '../support/random.ts'
import { clusterProblem, startClusterExchange } from './cluster.ts'
import type { ChaosExchange } from './exchange.ts'
import { SAMPLE } from './flows.ts'
import { Load } from './load.ts'
import { startMachine } from './machine.ts'
import { type PlannedRun, planOf, repeatFlags } from './plan.ts'
import { RunPlayer } from './run.ts'
import { EXCHANGES, tableText } from './table.ts'

const {
  runs: wanted,
  run: repeated,
  seed,
  exchange,
  recording,
  trace: isTraced,
  table: showsTable,
} = argumentsOf({
  command: 'npm run chaos --',
  flags: {
    runs: withDefault(wholeNumber('runs of at least 30 s, with three faults each', { least: 1 }), 20),
    seed: withDefault(wholeNumber('of the faults and of the load'), 1),
    run: wholeNumber('repeat this run, and those before it on the same exchange', { least: 1 }),
    exchange: oneOf(EXCHANGES, 'only this kind; by default every third group of runs is on the cluster'),
    recording: withDefault(
      text('<file>', 'order flow of recorded runs, such as LOBSTER or an order log'),
      SAMPLE,
    ),
    trace: toggle('print the times of the faults of every run'),
    table: toggle('print the faults and the processes that suffer them, and run nothing'),
  },
})

if (showsTable) {
  console.log(tableText())
  process.exit(0)
}

// The queues of the machine's stack are in its database, whatever this shell has.
delete process.env.REDIS_URL

const terms = { seed, exchange }
const plan = planOf(terms, repeated ?? wanted)
const last = plan.at(-1) as PlannedRun
const selected = repeated === undefined ? plan : plan.filter(({ first }) => first === last.first)
const totals = { runs: 0, faults: 0, skipped: 0, violations: 0, batch: 0, order: 0 }
let running: ChaosExchange | null = null

// Ctrl-C ends what was started.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    const stopped = running?.stop(false) ?? Promise.resolve()
    void stopped.finally(() => process.exit(130))
  })

async function playGroup(group: readonly PlannedRun[]): Promise<void> {
  const problem = group[0]?.exchange === 'cluster' ? clusterProblem() : null
  if (problem !== null) {
    totals.skipped += group.flatMap(({ faults }) => faults).length
    return console.log(`${group.length} runs on the cluster skipped: ${problem}`)
  }
  const started = group[0]?.exchange === 'cluster' ? await startClusterExchange() : await startMachine(group)
  running = started
  const load = await Load.start(started.audited, started.apis, randomOf(seed))
  try {
    for (const run of group) {
      await play(started, load, run)
      if (totals.violations > 0) return
    }
  } finally {
    await load.close()
    await started.stop(totals.violations > 0)
    running = null
  }
}

async function play(started: ChaosExchange, load: Load, run: PlannedRun): Promise<void> {
  const before = load.commands.acknowledged
  const { trace, skipped, violations, longest } = await RunPlayer.play(started, load, run, recording)
  totals.runs++
  totals.faults += trace.length - skipped.length
  totals.skipped += skipped.length
  totals.violations += violations.length
  totals.batch = Math.max(totals.batch, longest.batch)
  totals.order = Math.max(totals.order, longest.order)
  console.log(
    `run ${run.number} (${run.exchange}, ${run.load}): ${run.faults.map(({ fault, target }) => `${fault} of ${target}`).join(', ')}; ` +
      `${load.commands.acknowledged - before} commands acknowledged, longest pause to a batch ${longest.batch} ms, ` +
      `to an accepted order ${longest.order} ms${skipped.map((line) => `; skipped: ${line}`).join('')}`,
  )
  if (isTraced || violations.length > 0) for (const line of trace) console.log(`  ${line}`)
  if (violations.length === 0) return
  console.log(`seed ${seed}, run ${run.number}: ${violations.length} violations`)
  for (const line of violations) console.log(`  ${line}`)
  console.log(`logs: ${started.keptLogs}`)
  console.log(`repeat: npm run chaos -- ${repeatFlags(terms, run)}`)
}

for (const group of Map.groupBy(selected, ({ first }) => first).values())
  if (totals.violations === 0) await playGroup(group)
console.log(
  `${totals.runs} runs, ${totals.faults} faults, ${totals.skipped} skipped, longest pause to a batch ${totals.batch} ms and to an ` +
    `accepted order ${totals.order} ms, ${totals.violations} violations`,
)
if (totals.violations > 0) process.exitCode = 1
