/** Brings the tables of readers in step with the state, in the transaction that appends the rows of a group. */
import type { Statement } from '../../../db/round-trip.ts'
import type { ClearingInputs } from '../../../domain/auction/clearing.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import { accountParts } from './accounts.ts'
import { chainParts } from './chain.ts'
import { WrittenMark } from './changes.ts'
import { actions, averages, batches, markets, progress } from './markets.ts'
import { fills, orders } from './orders.ts'
import type { TablePart } from './part.ts'
import { rowStatements } from './rows.ts'

/** Statements that bring the tables of readers in step with the state. */
export interface TableWriter {
  /**
   * Changes in the state since the last call, and the rows that have changed it, as statements for the transaction that appends these rows.
   * Called when the state has exactly these rows behind those of the last call. If the group is not stored, its rows are taken back from the state
   * before the next call; a repetition of the append uses the same statements.
   */
  collect(rows: readonly Entry[]): Statement[]
  /** The inputs of a batch that was decided: no row has them, and they are stored with the batch. Without them the batch has no proof. */
  keepInputs(marketId: number, batchId: number, inputs: ClearingInputs): void
  /** The tables have the present state, because another owner has written them. */
  forget(): void
}

/** Observes the state, which the tables have at the time of the call. */
export function createTableWriter(state: ExchangeState): TableWriter {
  const mark = new WrittenMark(state.core)
  const batchesPart = batches(mark, state)
  // A table comes before those that refer to it.
  const parts: readonly TablePart[] = [
    accountParts.users(mark, state),
    accountParts.accounts(mark, state),
    markets(mark, state),
    progress(mark, state),
    averages(mark, state),
    accountParts.positions(mark, state),
    orders(mark, state),
    batchesPart,
    fills(mark, state),
    actions(mark, state),
    ...chainParts.map((part) => part(mark, state)),
  ]
  return {
    collect(rows) {
      if (rows.length === 0) return []
      const statements = parts.flatMap((part) => part.collect(rows))
      mark.advance()
      return [...statements, ...rowStatements(rows)]
    },
    keepInputs: batchesPart.keepInputs,
    forget() {
      for (const part of parts) part.forget()
      mark.advance()
    },
  }
}
