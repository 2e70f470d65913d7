/**
 * `npm run model:deep -- [seed] [minutes]`: the model tests, long. First the life of orders in one market, then the whole exchange with its
 * processes killed, for about so many minutes (20) together. Ends with 1 at the first thing that is not as the model says.
 */
import { spawnSync } from 'node:child_process'

const SECONDS_PER_ROUND = 8
const seed = Number(process.argv[2] ?? Date.now() % 1_000_000)
const minutes = Number(process.argv[3] ?? 20)
if (!Number.isInteger(seed) || !(minutes > 0)) {
  console.error('npm run model:deep -- [seed, a whole number] [minutes]')
  process.exit(2)
}

const rounds = Math.ceil((minutes * 45) / SECONDS_PER_ROUND)
const runs = Math.ceil(minutes * 5)
console.log(`seed ${seed}: ${runs} runs of one market, ${rounds} rounds of the whole exchange`)
const env = { ...process.env, MODEL_SEED: `${seed}`, MODEL_TIMEOUT: '7200000', MODEL_VERBOSE: '1' }
for (const [file, more] of [
  ['test/keeper/order-life.props.test.ts', { MODEL_RUNS: `${runs}`, MODEL_LENGTH: '150' }],
  ['test/e2e/model.test.ts', { MODEL_ROUNDS: `${rounds}` }],
] as const) {
  const { status } = spawnSync('node_modules/.bin/mocha', [file], {
    env: { ...env, ...more },
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(1)
}
