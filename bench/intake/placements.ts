/** Gives the load generator its accounts, runs the loads one after another, and collects what they cost. */
import { cpuBetween, cpuTimes } from './cpu.ts'
import type { Exchange } from './exchange.ts'
import { type Generator, startGenerator } from './generator.ts'
import type { LoadRun, Measured } from './load.ts'
import { type Counted, caughtUp, checkNothingLost } from './nothing-lost.ts'
import { type Behind, watchBehind } from './watch.ts'

export const runsOf = (seconds: number): readonly LoadRun[] => [
  { name: 'warm-up', kind: 'closed', clients: 32, seconds: 5 },
  { name: '1 client', kind: 'closed', clients: 1, seconds: 5 },
  { name: '32 clients', kind: 'closed', clients: 32, seconds: 5 },
  { name: '256 clients', kind: 'closed', clients: 256, seconds: 5 },
  { name: '200/s', kind: 'open', rate: 200, seconds: Math.ceil(seconds / 3) },
  { name: '2000/s', kind: 'open', rate: 2000, seconds },
]

/** A run as measured, what one placement cost, and what went on behind it. */
export interface Costed extends Measured, Partial<Behind> {
  /** Microseconds per placement, by program. */
  readonly cpu_us: Readonly<Record<string, number>>
}

export interface Placements {
  readonly runs: readonly Costed[]
  readonly counted: Counted
}

async function measureRun(exchange: Exchange, run: LoadRun, generator: Generator): Promise<Costed> {
  const { port, keys, markets, keeperUrl, db } = exchange
  const before = await cpuTimes(exchange)
  const watch = keeperUrl === null ? null : await watchBehind(exchange, keeperUrl)
  const measured = await generator.run({ port, keys, markets, run })
  const used = cpuBetween(before, await cpuTimes(exchange))
  if (keeperUrl !== null) await caughtUp(db)
  const behind = await watch?.finish()
  const perOrder = (seconds: number): number => Math.round((seconds / measured.accepted) * 1e6)
  const cpu_us = Object.fromEntries([...used].map(([name, seconds]) => [name, perOrder(seconds)]))
  return { ...measured, cpu_us: { ...cpu_us, generator: perOrder(measured.cpu_s) }, ...behind }
}

export async function measurePlacements(
  start: () => Promise<Exchange>,
  runs: readonly LoadRun[],
): Promise<Placements> {
  const exchange = await start()
  const generator = startGenerator()
  try {
    const costed: Costed[] = []
    for (const run of runs) costed.push(await measureRun(exchange, run, generator))
    const accepted = costed.reduce((sum, run) => sum + run.placed, 0)
    const counted = await checkNothingLost(exchange.db, accepted, exchange.keeperUrl !== null)
    return { runs: costed, counted }
  } finally {
    generator.stop()
    await exchange.stop()
  }
}
