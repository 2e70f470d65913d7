/** Sends the engine which nonces of the lanes are final, so that it forgets the hashes of their transactions. */
import type { Address } from '../../domain/units.ts'
import { type BackgroundPorts, BackgroundTask } from '../background-task.ts'
import { ask, type Engine } from '../engine/link/engine.ts'
import type { Chain } from '../ports.ts'

export interface ReleasePorts extends BackgroundPorts {
  readonly engine: Engine
  readonly chain: Pick<Chain, 'head' | 'transactionCount'>
  /** All keys that the lanes of this process have had. */
  readonly relayers: () => Promise<readonly Address[]>
}

/** Blocks on top of a transaction after which no fork takes it back. */
const FINAL_DEPTH = 64
const INTERVAL_MS = 60_000
const BUDGET_MS = 10_000

export async function releaseFinal({
  engine,
  chain,
  relayers,
}: Pick<ReleasePorts, 'engine' | 'chain' | 'relayers'>): Promise<void> {
  const { block } = await chain.head()
  if (block < FINAL_DEPTH) return
  for (const relayer of await relayers()) {
    const below = await chain.transactionCount(relayer, block - FINAL_DEPTH)
    if (below === 0) continue
    const command = { kind: 'release_transactions', relayer, below } as const
    await ask<'release_transactions'>(engine, command, BUDGET_MS)
  }
}

/** Runs once a minute. Returns what stops it. */
export function runReleases(ports: ReleasePorts): () => void {
  const task = new BackgroundTask(ports, 'releasing final transactions failed; will retry', {})
  const timer = setInterval(() => task.poll(0, () => releaseFinal(ports)), INTERVAL_MS)
  return () => clearInterval(timer)
}
