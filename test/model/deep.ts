/**
 * `npm run model:deep -- [seed] [minutes]`: the model tests, long. First the life of orders in one market, then the whole exchange with its
 * processes killed, one and two of each, for about so many minutes (20) together. Ends with 1 at the first thing that is not as the model
 * says. `npm run model:deep -- --shrink seed rounds [minutes]` looks for the least that still fails of a run of the whole exchange.
 */
import { spawnSync } from 'node:child_process'
import { shrinkRun } from './shrink-run.ts'

const SECONDS_PER_ROUND = 8

function runAll(seed: number, minutes: number): boolean {
  const rounds = Math.ceil((minutes * 45) / SECONDS_PER_ROUND / 2)
  const runs = Math.ceil(minutes * 5)
  console.log(`seed ${seed}: ${runs} runs of one market, twice ${rounds} rounds of the whole exchange`)
  const env = { ...process.env, MODEL_SEED: `${seed}`, MODEL_TIMEOUT: '7200000', MODEL_VERBOSE: '1' }
  return (
    [
      ['test/keeper/order-life.props.test.ts', { MODEL_RUNS: `${runs}`, MODEL_LENGTH: '150' }],
      ['test/e2e/model.test.ts', { MODEL_ROUNDS: `${rounds}` }],
    ] as const
  ).every(([file, more]) => {
    const { status } = spawnSync('node_modules/.bin/mocha', [file], {
      env: { ...env, ...more },
      stdio: 'inherit',
    })
    return status === 0
  })
}

const isShrinking = process.argv[2] === '--shrink'
const [seed = Date.now() % 1_000_000, second, third] = process.argv.slice(isShrinking ? 3 : 2).map(Number)
const rounds = isShrinking ? second : undefined
const minutes = (isShrinking ? third : second) ?? 20
if (!Number.isInteger(seed) || !(minutes > 0) || (isShrinking && !Number.isInteger(rounds))) {
  console.error('npm run model:deep -- [seed, a whole number] [minutes] | --shrink seed rounds [minutes]')
  process.exit(2)
}
if (rounds !== undefined) await shrinkRun(seed, rounds, minutes)
else if (!runAll(seed, minutes)) process.exit(1)
