import type { Statement } from '../../../db/round-trip.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
export interface TableWriter {
  collect(rows: readonly Entry[]): readonly Statement[]
}
export const createTableWriter = (_state: ExchangeState): TableWriter => ({ collect: () => [] })
