/** `read.realized_profits`: what the events of each hour and day realized, by account and market. Pure. */
import type { Selectable } from 'kysely'
import type { ReadRealizedProfitsTable } from '../../../db/read-equity-schema.ts'
import type { ReadPositionStatesTable } from '../../../db/read-schema.ts'
import { tableOf } from '../read-table.ts'

export type RealizedProfit = Selectable<ReadRealizedProfitsTable>
type State = Selectable<ReadPositionStatesTable>

export const REALIZED_PROFITS = tableOf<RealizedProfit>({
  table: 'read.realized_profits',
  key: ['user_id', 'span', 'start', 'market_id'],
  columns: {
    user_id: 'bigint',
    span: 'bigint',
    start: 'bigint',
    market_id: 'integer',
    realized_pnl: 'numeric',
    fees: 'numeric',
    funding: 'numeric',
  },
})

const HOUR = 60 * 60_000
/** The lengths that are stored: an hour and a day. */
export const PROFIT_SPANS = [HOUR, 24 * HOUR] as const

/** Changes of the table. */
export class RealizedProfits {
  readonly #changes = new Map<string, RealizedProfit>()

  /** Adds the result of the event between two states. `sign` -1 subtracts it. */
  add(state: State, before: State | undefined, sign: 1n | -1n): void {
    const same = before !== undefined && before.closed_at === null ? before : null
    const gain = (name: 'realized_pnl' | 'fees' | 'funding'): bigint =>
      sign * (state[name] - (same?.[name] ?? 0n))
    for (const span of PROFIT_SPANS) {
      const start = state.at - (state.at % span)
      const key = `${state.user_id} ${state.market_id} ${span} ${start}`
      const known = this.#changes.get(key)
      this.#changes.set(key, {
        ...{ user_id: state.user_id, market_id: state.market_id, span, start },
        realized_pnl: (known?.realized_pnl ?? 0n) + gain('realized_pnl'),
        fees: (known?.fees ?? 0n) + gain('fees'),
        funding: (known?.funding ?? 0n) + gain('funding'),
      })
    }
  }

  get rows(): RealizedProfit[] {
    return [...this.#changes.values()].filter(
      ({ realized_pnl, fees, funding }) => realized_pnl !== 0n || fees !== 0n || funding !== 0n,
    )
  }
}
