/** Ports of the retention of proofs. */
import type { Fence } from '../../db/fence.ts'
import type { Millis } from '../../domain/units.ts'

export interface ProofStore {
  /** Deletes the inputs of the oldest batches up to `asOf`, at most `most`. Returns how many were deleted. */
  deleteInputs(fence: Fence, asOf: Millis, most: number): Promise<number>
}
