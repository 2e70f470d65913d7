/** Brings the tables of readers in step with the state: statements for what groups of rows have changed. */
import type { Statement } from '../../../db/round-trip.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import { chainParts } from './chain.ts'
import { WrittenMark } from './changes.ts'
import { actions, averages, batches, markets, progress } from './markets.ts'
import { orders } from './orders.ts'
import type { TablePart } from './part.ts'
import { rowStatements } from './rows.ts'
import { users } from './users.ts'

/** Statements that bring the tables of readers in step with the state. */
export interface TableWriter {
  /**
   * Changes since the last call and their rows, as statements for one transaction, which the caller repeats until it
   * commits. The state has exactly these rows since the last call.
   */
  collect(rows: readonly Entry[]): Statement[]
  /** The last statements are not used, because the last of their groups is not stored; the next collection repeats the rows of the stored groups. */
  giveBack(): void
  /** The tables have the present state, because another owner has written them. */
  forget(): void
}

/** Makes a part that observes the state, whose table has its rows up to the mark. */
export type PartFactory = (mark: WrittenMark, state: ExchangeState) => TablePart

/** Observes the state, which the tables have at the time of the call. `further`: written behind the tables of the exchange. */
export function createTableWriter(state: ExchangeState, further: readonly PartFactory[] = []): TableWriter {
  const mark = new WrittenMark(state.core)
  // A table comes before those that refer to it.
  const parts: readonly TablePart[] = [
    users(mark, state),
    markets(mark, state),
    progress(mark, state),
    averages(mark, state),
    orders(mark, state),
    batches(mark, state),
    actions(mark, state),
    ...[...chainParts, ...further].map((part) => part(mark, state)),
  ]
  return {
    collect(rows) {
      if (rows.length === 0) return []
      const statements = parts.flatMap((part) => part.collect(rows))
      mark.advance()
      return [...statements, ...rowStatements(rows)]
    },
    giveBack() {
      for (const part of parts) part.giveBack()
    },
    forget() {
      for (const part of parts) part.forget()
      mark.advance()
    },
  }
}
