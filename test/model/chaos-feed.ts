/**
 * The live feed of a running exchange with two of each process, for longer than a test: clients are killed and resume at random points while
 * orders are placed, processes are killed and the chain forks. After each round their copies of book, fills and account are compared with
 * REST. It ends with the numbers of resumes and differences, and exits with 1 at the first difference.
 *
 *   npm run chaos:feed -- [--resumes 10000] [--seed 1]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argumentsOf, wholeNumber, withDefault } from '../../service/command-line.ts'
import { startStack } from '../../stack/stack.ts'
import { type FeedFault, FeedRun } from '../e2e/support/feed-run.ts'
import { startSecondInstance } from '../e2e/support/second-instance.ts'
import { differencesOf } from '../e2e/support/stack.ts'
import { randomOf } from '../support/random.ts'

const { seed, resumes } = argumentsOf({
  command: 'npm run chaos:feed --',
  flags: {
    seed: withDefault(wholeNumber('of the random choices'), 1),
    resumes: withDefault(wholeNumber('connections that end', { least: 1 }), 10_000),
  },
})

const PER_ROUND = 1_000
const FAULTS: readonly FeedFault[] = ['api', 'indexer', 'keeper', 'fork', 'fork']
const FAULTS_PER_ROUND = 3

const random = randomOf(seed)
const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-chaos-feed-'))
const stack = await startStack({ port: 0, dataDir, fresh: false, bots: false, backstop: false }, () => {})
try {
  const second = await startSecondInstance(stack)
  const apis = [stack.file.base_url, second.baseUrl]
  const run = await FeedRun.start({
    ...{ stack, apis, seed, marketIds: [1, 3] },
    ...{ traders: 8, copiesPerTrader: 5 },
  })
  const found: string[] = []
  while (run.figures.resumes < resumes && found.length === 0) {
    const faults = Array.from({ length: FAULTS_PER_ROUND }, () => FAULTS[random(FAULTS.length)] as FeedFault)
    found.push(...(await run.play(Math.min(PER_ROUND, resumes - run.figures.resumes), faults)))
    const { resumes: done, messages, snapshots } = run.figures
    console.log(`${faults.join(', ')}: ${done} resumes, ${messages} messages, ${snapshots} snapshots`)
  }
  found.push(...(await differencesOf(stack)))
  for (const difference of found) console.log(difference)
  console.log(`${run.figures.resumes} resumes, ${found.length} differences`)
  if (found.length > 0) {
    process.exitCode = 1
    console.log(`logs: ${dataDir}/logs`)
  }
  await run.close()
  await second.stop()
} finally {
  await stack.stop()
  if (process.exitCode !== 1) rmSync(dataDir, { recursive: true, force: true })
}
