/** Deletes the inputs of old batches: a batch has a proof as long as its inputs are stored. */
import type { Fence } from '../../db/fence.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { ProofStore } from './ports.ts'

const DAY = 86_400_000
/** Inputs can have hundreds of kilobytes; a transaction deletes those of 200 batches at most. */
const MOST = 200
const AGAIN_MS = 100
const IDLE_MS = 60_000

export interface ProofPorts {
  readonly store: ProofStore
  readonly clock: Clock
}

/** One turn. Returns the milliseconds until the next turn. */
export async function deleteOldInputs(
  { store, clock }: ProofPorts,
  days: number,
  fence: Fence,
): Promise<number> {
  const deleted = await store.deleteInputs(fence, (clock.now() - days * DAY) as Millis, MOST)
  return deleted === MOST ? AGAIN_MS : IDLE_MS
}
