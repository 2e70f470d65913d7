/** Rows that a command will write, and the state after these rows. */
import { ACCOUNTS_SHARD, CHAIN_SHARD, type JournalRow, marketShard } from '../journal/journal-row.ts'
import type { MarketId, Seq } from '../units.ts'
import { apply, CHAIN, type Entry } from './apply.ts'
import type { ExchangeState } from './state.ts'

/** Market id that stands for the accounts shard. */
export const ACCOUNTS = 0 as MarketId

/**
 * A decision in progress. `state` includes every row that `write` added; rows are applied lazily. `close` rolls the
 * state back to the draft's start, `keep` leaves it with all rows.
 */
export class Draft {
  readonly #state: ExchangeState
  readonly #start: number
  readonly #entries: Entry[] = []
  /** Marks before each applied entry. The applied entries are the first entries of the draft. */
  readonly #marks: number[] = []
  /** Next sequence of each journal that the draft has written to. */
  readonly #next = new Map<MarketId, Seq>()

  constructor(state: ExchangeState) {
    this.#state = state
    this.#start = state.core.undo.mark
  }

  /** State with all rows so far. Callers must not keep it across a `write`. */
  get state(): ExchangeState {
    this.#applyPending()
    return this.#state
  }

  #applyPending(): void {
    while (this.#marks.length < this.#entries.length) {
      const entry = this.#entries[this.#marks.length] as Entry
      this.#marks.push(this.#state.core.undo.mark)
      apply(this.#state, entry)
    }
  }

  /** The rows so far. */
  get entries(): readonly Entry[] {
    return this.#entries
  }

  /**
   * State with the rows applied so far, possibly not all. Callers read only values that pending rows do not
   * change.
   */
  get applied(): ExchangeState {
    return this.#state
  }

  /** Whether any row was added. */
  get hasRows(): boolean {
    return this.#entries.length > 0
  }

  /** Sequence of the last row of the market, or of the accounts (0), including all rows so far. */
  lastSeq(marketId: MarketId): Seq {
    return (this.nextSeq(marketId) - 1) as Seq
  }

  /** Sequence of the next row of the market, or of the accounts (0). */
  nextSeq(marketId: MarketId): Seq {
    const known = this.#next.get(marketId)
    if (known !== undefined) return known
    const shard = shardOf(marketId)
    const last = this.#entries.findLast((entry) => entry.shard === shard)
    return ((last?.seq ?? this.#state.heads.get(marketId)?.seq ?? 0) + 1) as Seq
  }

  /** Adds a row to the market's journal, or to the accounts journal (0), and returns its sequence. */
  write(marketId: MarketId, row: JournalRow): Seq {
    const seq = this.nextSeq(marketId)
    this.#entries.push({ shard: shardOf(marketId), seq, row })
    this.#next.set(marketId, (seq + 1) as Seq)
    return seq
  }

  /** Runs `work`. Rolls back the rows that it added if `isKept` rejects its result, or if it throws. */
  attempt<Value>(work: () => Value, isKept: (value: Value) => boolean): Value {
    const before = this.#entries.length
    let kept = false
    try {
      const value = work()
      kept = isKept(value)
      return value
    } finally {
      if (!kept) this.#takeBack(before)
    }
  }

  /** Rolls the state back to the start of the draft. */
  close(): void {
    this.#state.core.undo.undoTo(this.#start)
  }

  /** Applies the remaining rows, and returns all rows with the mark of the undo log before each. Nothing may follow but `close`. */
  keep(): { readonly entries: readonly Entry[]; readonly marks: readonly number[] } {
    this.#applyPending()
    return { entries: this.#entries, marks: this.#marks }
  }

  #takeBack(length: number): void {
    const mark = this.#marks[length]
    if (mark !== undefined) {
      this.#state.core.undo.undoTo(mark)
      this.#marks.length = length
    }
    this.#entries.length = length
    this.#next.clear()
  }
}

function shardOf(marketId: MarketId): string {
  if (marketId === CHAIN) return CHAIN_SHARD
  return marketId === ACCOUNTS ? ACCOUNTS_SHARD : marketShard(marketId)
}
