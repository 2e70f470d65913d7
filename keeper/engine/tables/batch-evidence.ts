/** Keeps the inputs from which readers recompute a batch. No journal row has them: they are stored with the group that clears the batch. */
import { packInputs } from '../../../db/batch-inputs.ts'
import type { Statement } from '../../../db/round-trip.ts'
import { batchInputsTable } from '../../../db/written-tables.ts'
import type { ClearingInputs } from '../../../domain/auction/clearing.ts'
import { type Entry, marketIdOf } from '../../../domain/exchange/apply.ts'
import { batchKey } from '../../../domain/exchange/tables/markets.ts'
import { rowsOf, statements } from './part.ts'

export class BatchEvidence {
  /** Inputs of batches that are decided and not stored yet. */
  readonly #inputs = new Map<string, ClearingInputs>()

  /** Replaces earlier inputs: a batch that is decided again has other inputs. */
  keep(marketId: number, batchId: number, inputs: ClearingInputs): void {
    this.#inputs.set(batchKey(marketId, batchId), inputs)
  }

  /** Statements for the transaction that appends the rows. */
  statementsOf(group: readonly Entry[]): Statement[] {
    const rows = rowsOf(group, 'batch_cleared').flatMap(({ shard, row: { batch_id, as_of } }) => {
      const market_id = marketIdOf(shard)
      const inputs = this.#inputs.get(batchKey(market_id, batch_id))
      if (inputs === undefined) return []
      return [{ market_id, batch_id, as_of, inputs: `\\x${packInputs(inputs).toString('hex')}` }]
    })
    return statements(batchInputsTable.put, rows)
  }

  stored(group: readonly Entry[]): void {
    for (const { shard, row } of rowsOf(group, 'batch_cleared'))
      this.#inputs.delete(batchKey(marketIdOf(shard), row.batch_id))
  }
}
