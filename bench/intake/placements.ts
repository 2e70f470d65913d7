/** Runs the loads one after another and measures latency, CPU time per placement, and the delay of readers and auctions. */

import { type Counts, checkComplete, waitForReadModel } from './completeness.ts'
import { cpuBetween, cpuTimes } from './cpu.ts'
import { type Downstream, watchDownstream } from './downstream.ts'
import { type Generator, startGenerator } from './generator.ts'
import type { LoadRun, Measured } from './load.ts'
import type { Target } from './target.ts'

export const runsOf = (seconds: number): readonly LoadRun[] => [
  { name: 'warm-up', kind: 'closed', clients: 32, seconds: 5 },
  { name: '1 client', kind: 'closed', clients: 1, seconds: 5 },
  { name: '32 clients', kind: 'closed', clients: 32, seconds: 5 },
  { name: '256 clients', kind: 'closed', clients: 256, seconds: 5 },
  { name: '200/s', kind: 'open', rate: 200, seconds: Math.ceil(seconds / 3) },
  { name: '2000/s', kind: 'open', rate: 2000, seconds },
]

/** The measurement of a run, with its CPU time per placement and its downstream delays. */
export interface RunWithCosts extends Measured, Partial<Downstream> {
  /** Microseconds per placement, by program. */
  readonly cpu_us: Readonly<Record<string, number>>
}

export interface Placements {
  readonly runs: readonly RunWithCosts[]
  readonly counted: Counts
}

async function measureRun(exchange: Target, run: LoadRun, generator: Generator): Promise<RunWithCosts> {
  const { port, keys, markets, keeperUrl, db } = exchange
  const before = await cpuTimes(exchange)
  const watch = keeperUrl === null ? null : await watchDownstream(exchange, keeperUrl)
  const measured = await generator.run({ port, keys, markets, run })
  const used = cpuBetween(before, await cpuTimes(exchange))
  if (keeperUrl !== null) await waitForReadModel(db)
  const behind = await watch?.finish()
  const perOrder = (seconds: number): number => Math.round((seconds / measured.accepted) * 1e6)
  const cpu_us = Object.fromEntries([...used].map(([name, seconds]) => [name, perOrder(seconds)]))
  return { ...measured, cpu_us: { ...cpu_us, generator: perOrder(measured.cpu_s) }, ...behind }
}

export async function measurePlacements(
  start: () => Promise<Target>,
  runs: readonly LoadRun[],
): Promise<Placements> {
  const exchange = await start()
  const generator = startGenerator()
  try {
    const costed: RunWithCosts[] = []
    for (const run of runs) costed.push(await measureRun(exchange, run, generator))
    const accepted = costed.reduce((sum, run) => sum + run.placed, 0)
    const counted = await checkComplete(exchange.db, accepted, exchange.keeperUrl !== null)
    return { runs: costed, counted }
  } finally {
    generator.stop()
    await exchange.stop()
  }
}
