/**
 * `npm run model:deep -- [seed] [minutes]` runs the model tests for about 20 minutes or the given number: first the orders of one market,
 * then its settlement under faults, then the complete exchange with one and with two of each process. It exits with 1 at the first
 * difference from the model.
 * `npm run model:deep -- --shrink seed rounds [minutes]` searches for a shorter run of the complete exchange that still fails.
 */
import { spawnSync } from 'node:child_process'
import { orExit, parseArguments, rejectArguments, toggle } from '../../service/command-line.ts'
import { shrinkRun } from './shrink-run.ts'

const SECONDS_PER_ROUND = 8

function runAll(seed: number, minutes: number): boolean {
  const rounds = Math.ceil((minutes * 40) / SECONDS_PER_ROUND / 2)
  const runs = Math.ceil(minutes * 4)
  console.log(
    `seed ${seed}: ${runs} runs of one market, ${minutes} of its settlement, then two times ${rounds} rounds of the complete exchange`,
  )
  const env = { ...process.env, MODEL_SEED: `${seed}`, MODEL_TIMEOUT: '7200000', MODEL_VERBOSE: '1' }
  return (
    [
      ['test/keeper/order-life.props.test.ts', { MODEL_RUNS: `${runs}`, MODEL_LENGTH: '150' }],
      ['test/keeper/settlement/faults.props.test.ts', { FAULT_SEED: `${seed}`, FAULT_RUNS: `${minutes}` }],
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

const COMMAND_LINE = {
  command: 'npm run model:deep --',
  positionals: '[seed] [minutes] | --shrink seed rounds [minutes]',
  flags: { shrink: toggle('search for a shorter run that still fails') },
} as const

function readArguments() {
  const { shrink, positionals } = parseArguments(COMMAND_LINE, process.argv.slice(2))
  const numberAt = (name: string, place: number, fallback?: number): number => {
    const value = positionals[place] === undefined ? fallback : Number(positionals[place])
    if (value !== undefined && Number.isSafeInteger(value) && value >= 0) return value
    return rejectArguments(COMMAND_LINE, `${name} must be a whole number, not ${positionals[place]}`)
  }
  return {
    seed: numberAt('seed', 0, Date.now() % 1_000_000),
    rounds: shrink ? numberAt('rounds', 1) : null,
    minutes: numberAt('minutes', shrink ? 2 : 1, 20),
  }
}

const { seed, rounds, minutes } = orExit(readArguments)
if (rounds !== null) await shrinkRun(seed, rounds, minutes)
else if (!runAll(seed, minutes)) process.exit(1)
