/**
 * Measures signature checks on one core, then placements over REST against a complete stack, with the load generator in
 * a process of its own. Fails if an accepted order is lost.
 */

import { argumentsOf, positiveNumber, text, toggle, withDefault } from '../service/command-line.ts'
import { startComplete } from './intake/complete-target.ts'
import { startIsolated } from './intake/isolated-target.ts'
import { measurePlacements, type RunWithCosts, runsOf } from './intake/placements.ts'
import { measureSignatures } from './intake/signatures.ts'

const values = argumentsOf({
  command: 'npm run bench:intake --',
  flags: {
    isolated: toggle('measure api, engine and Postgres alone'),
    seconds: withDefault(positiveNumber('duration of a run'), 60),
    runs: text('<names>', "only these runs, such as '200/s,2000/s'"),
  },
})
const wanted = values.runs === undefined ? null : new Set(['warm-up', ...values.runs.split(',')])

const signatures = measureSignatures()
console.table({
  'bare recovery': { 'per second and core': Math.round(signatures.bare), share: 1 },
  'complete check of an order': {
    'per second and core': Math.round(signatures.verified),
    share: Number(signatures.share.toFixed(3)),
  },
})

const runs = runsOf(values.seconds).filter(({ name }) => wanted?.has(name) ?? true)
const placements = await measurePlacements(values.isolated ? startIsolated : startComplete, runs)
const line = ({ cpu_s: _, cpu_us, readable, auctions, ...run }: RunWithCosts) => ({
  ...run,
  ...(readable && { 'readable p99': readable.p99_ms, 'readable max': readable.max_ms }),
  ...(auctions && { 'auction mean': auctions.mean_ms, 'auction p99 <': auctions.p99_below_ms }),
})
console.table(placements.runs.map(line))
console.log('CPU per placement, microseconds')
console.table(Object.fromEntries(placements.runs.map(({ run, cpu_us }) => [run, cpu_us])))
console.log('stored orders:', placements.counted)
const stack = values.isolated ? 'api, engine and Postgres' : 'complete'
console.log(JSON.stringify({ bench: 'intake', stack, signatures, ...placements }))
