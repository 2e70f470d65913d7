/**
 * Measures signature checks of a batch, then batches of 50 orders and single cancels over REST at a fixed rate, from
 * their scheduled times. Fails if an accepted order is lost.
 */

import { argumentsOf, positiveNumber, toggle, withDefault } from '../service/command-line.ts'
import { startComplete } from './intake/complete-target.ts'
import { startIsolated } from './intake/isolated-target.ts'
import type { LoadRun } from './intake/load.ts'
import { measurePlacements } from './intake/placements.ts'
import { measureThreads } from './intake/threads.ts'

const ORDERS = 50

const { isolated, seconds } = argumentsOf({
  command: 'npm run bench:batch --',
  flags: {
    isolated: toggle('measure api, engine and Postgres alone'),
    seconds: withDefault(positiveNumber('duration of a run'), 20),
  },
})
const runs: readonly LoadRun[] = [
  { name: 'warm-up', kind: 'open', rate: 100, seconds: 5, command: { batchOf: ORDERS } },
  { name: '20 batches/s', kind: 'open', rate: 20, seconds, command: { batchOf: ORDERS } },
  { name: '100 batches/s', kind: 'open', rate: 100, seconds, command: { batchOf: ORDERS } },
  { name: '200 placements/s', kind: 'open', rate: 200, seconds },
  { name: '200 cancels/s', kind: 'open', rate: 200, seconds, command: 'cancel' },
]

const threads = await measureThreads([1, 4, 16, ORDERS])
console.log(
  'signature checks, microseconds: on the main thread; with a worker: main-thread time, and time until the result',
)
console.table(threads)

const measured = await measurePlacements(isolated ? startIsolated : startComplete, runs)
console.table(
  measured.runs.map(({ cpu_s: _, cpu_us: __, readable, auctions, ...run }) => ({
    ...run,
    'orders/s': Math.round((run.placed / run.accepted) * run.per_second),
    ...(readable && { 'readable p99': readable.p99_ms }),
    ...(auctions && { 'auction mean': auctions.mean_ms }),
  })),
)
console.log('stored orders:', measured.counted)
const stack = isolated ? 'api, engine and Postgres' : 'complete'
console.log(JSON.stringify({ bench: 'batch', stack, threads, ...measured }))
