/** The inputs of a batch. */
import { unpackInputs } from '../../../db/batch-inputs.ts'
import { loadPackedInputs } from '../../../db/batches.ts'
import type { Db, Tx } from '../../../db/client.ts'
import type { ClearingInputs } from '../../../domain/auction/clearing.ts'

/** The stored inputs of a batch: `recompute` of them gives its clearing. Undefined if there is no such batch, or they are deleted. */
export async function loadInputs(
  db: Db | Tx,
  marketId: number,
  batchId: number,
): Promise<ClearingInputs | undefined> {
  const packed = await loadPackedInputs(db, marketId, batchId)
  return packed === null ? undefined : unpackInputs(packed)
}
