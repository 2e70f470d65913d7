/**
 * How fast orders are taken in. First the signature path against bare public-key recovery, on one core; then placements over REST
 * against a complete stack of its own (api, keeper, indexer, Postgres, durable, chain and prices; no demo traders), with the load
 * generator in a process of its own on the same machine. Prints tables and one JSON line; fails where an accepted order is lost.
 *
 *   npm run bench:intake -- [--isolated] [--seconds 60] [--runs '200/s,2000/s']
 *
 * `--isolated` measures the api and Postgres alone.
 */
import { parseArgs } from 'node:util'
import { startComplete } from './intake/complete.ts'
import { startIsolated } from './intake/isolated.ts'
import { type Costed, measurePlacements, runsOf } from './intake/placements.ts'
import { measureSignatures } from './intake/signatures.ts'

const { values } = parseArgs({
  options: {
    isolated: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '60' },
    runs: { type: 'string' },
  },
})
const wanted = values.runs === undefined ? null : new Set(['warm-up', ...values.runs.split(',')])

const signatures = measureSignatures()
console.table({
  'bare recovery': { 'per second and core': Math.round(signatures.bare), share: 1 },
  'whole check of an order': {
    'per second and core': Math.round(signatures.verified),
    share: Number(signatures.share.toFixed(3)),
  },
})

const runs = runsOf(Number(values.seconds)).filter(({ name }) => wanted?.has(name) ?? true)
const placements = await measurePlacements(values.isolated ? startIsolated : startComplete, runs)
const line = ({ cpu_s: _, cpu_us, readable, turns, ...run }: Costed) => ({
  ...run,
  ...(readable && { 'readable p99': readable.p99_ms, 'readable max': readable.max_ms }),
  ...(turns && { 'turn mean': turns.mean_ms, 'turn p99 <': turns.p99_below_ms }),
})
console.table(placements.runs.map(line))
console.log('CPU per placement, microseconds')
console.table(Object.fromEntries(placements.runs.map(({ run, cpu_us }) => [run, cpu_us])))
console.log('nothing lost:', placements.counted)
const stack = values.isolated ? 'api and Postgres' : 'complete'
console.log(JSON.stringify({ bench: 'intake', stack, signatures, ...placements }))
