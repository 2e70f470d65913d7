/** The facts of one table: as the write side stores them, and as a state has them. */
import type { Tx } from '../../db/client.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'

export type Columns = Readonly<Record<string, unknown>>
/** Columns by name, of each row by key. */
export type Facts = ReadonlyMap<string, Columns>

export interface Comparison {
  readonly name: string
  stored(tx: Tx): Promise<Facts>
  held(state: ExchangeState): Facts
}
