/**
 * Stops the processes of a running exchange with two of each by SIGSTOP at random instants, as a machine that hangs or is partitioned does:
 * the process keeps its connections, locks and leases and answers nothing. Every market must have its next batch, and accept its next
 * order, within five seconds: after a process was stopped if another one can take over, else after it continued. Afterwards chain,
 * journal, write side, read model, REST and proofs must agree. It ends with one line of figures, and exits with 1 at the first violation.
 *
 *   npm run chaos:freeze -- [--runs 200] [--seed 1] [--process engine]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argumentsOf, text, wholeNumber, withDefault } from '../../service/command-line.ts'
import { startStack } from '../../stack/stack.ts'
import { FreezeRun } from '../e2e/support/freeze-run.ts'
import { randomOf } from '../support/random.ts'

const {
  seed,
  runs,
  process: name,
} = argumentsOf({
  command: 'npm run chaos:freeze --',
  flags: {
    runs: withDefault(wholeNumber('processes that are stopped', { least: 1 }), 200),
    seed: withDefault(wholeNumber('of the random choices'), 1),
    process: withDefault(text('<name>', 'stop only processes whose name begins so, for example engine'), ''),
  },
})

/** Bound of the time between two batches, and between two accepted orders, of each market. */
const MOST_MS = 5_000
/** Runs between two audits. */
const AUDIT_EVERY = 20

/** Runs of one exchange. A local chain that has grown too large is started again, which would count as a stop of every market. */
const MOST_RUNS = 40

const random = randomOf(seed)
const violations: string[] = []
const longest = { batchMs: 0, placementMs: 0 }
let done = 0

/** Stops up to `count` processes of a new exchange. Its folder stays if a law was violated. */
async function runGroup(count: number): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-chaos-freeze-'))
  const stack = await startStack(
    { port: 0, dataDir, fresh: false, bots: false, backstop: true, standby: true },
    () => {},
  )
  try {
    const run = await FreezeRun.start(stack, join(dataDir, 'logs', 'second'))
    for (let own = 1; own <= count && violations.length === 0; own++) {
      const frozen = await run.freeze(random, name)
      done++
      longest.batchMs = Math.max(longest.batchMs, frozen.batchMs)
      longest.placementMs = Math.max(longest.placementMs, frozen.placementMs)
      console.log(`${done}: ${JSON.stringify(frozen)}`)
      for (const what of ['batchMs', 'placementMs'] as const)
        if (frozen[what] > MOST_MS)
          violations.push(`${frozen.process}: ${what} ${frozen[what]} in market ${frozen.markets[what]}`)
      if (own % AUDIT_EVERY === 0 || own === count) violations.push(...(await run.differences()))
    }
    await run.stop()
  } finally {
    await stack.stop()
  }
  if (violations.length === 0) rmSync(dataDir, { recursive: true, force: true })
  else console.log(`logs: ${dataDir}/logs`)
}

while (done < runs && violations.length === 0) await runGroup(Math.min(MOST_RUNS, runs - done))
for (const violation of violations) console.log(`seed ${seed}, run ${done}: ${violation}`)
console.log(
  `${done} stops, longest time to a batch ${longest.batchMs} ms and to an accepted order ${longest.placementMs} ms, ` +
    `${violations.length} violations`,
)
if (violations.length > 0) process.exitCode = 1
