/** A market within a decision: the state that its steps read, and the draft that they write. */
import type { MarketSnapshot } from '../../../auction/market-snapshot.ts'
import type { MarketRow } from '../../../journal/journal-row.ts'
import type { MarketSpec } from '../../../market/market.ts'
import type { MarketId } from '../../../units.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import type { ExchangeState } from '../../state.ts'
import { MarketState } from './market-state.ts'
import { snapshotOf, specOf } from './snapshot.ts'

export class TurnContext {
  readonly inputs: Inputs
  readonly marketId: MarketId
  readonly #draft: Draft
  /** Cached snapshot; null after a write until the next read. */
  #snapshot: MarketSnapshot | null = null
  #market: MarketState | null = null

  constructor(draft: Draft, inputs: Inputs, marketId: MarketId) {
    this.#draft = draft
    this.inputs = inputs
    this.marketId = marketId
  }

  /** State with all rows so far. Callers must not keep it, or a view of it, across a `write`. */
  get state(): ExchangeState {
    return this.#draft.state
  }

  get market(): MarketState {
    this.#market ??= new MarketState(this.state, this.marketId)
    return this.#market
  }

  get snapshot(): MarketSnapshot {
    this.#snapshot ??= snapshotOf(this.state, this.inputs, this.marketId)
    return this.#snapshot
  }

  /** Specification at the market's listing. */
  get listed(): MarketSpec {
    return specOf(this.state, this.marketId)
  }

  write(...rows: readonly MarketRow[]): void {
    for (const row of rows) this.#draft.write(this.marketId, row)
    this.#snapshot = null
    this.#market = null
  }
}
