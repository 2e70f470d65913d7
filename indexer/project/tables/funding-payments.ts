/**
 * `read.funding_indexes`, `read.funding_positions` and `read.funding_spans`: what the view `read.account_transactions` derives funding
 * payments from. Pure. The laws are in `indexer/README.md`.
 */
import type { Selectable } from 'kysely'
import type { ReadOpenInterestChangesTable } from '../../../db/read-market-data-schema.ts'
import type {
  ReadFundingIndexesTable,
  ReadFundingPositionsTable,
  ReadFundingSpansTable,
  ReadOpenInterestTable,
} from '../../../db/read-schema.ts'
import { invariant } from '../../../domain/invariant.ts'
import type { FundingUpdatedRow, MarketEndedRow } from '../../../domain/journal/action-rows.ts'
import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow, PositionsMoved } from '../../../domain/journal/journal-row.ts'
import { isAdjustment } from '../../../domain/journal/move-cause.ts'
import { SPANS, spanStart } from '../../../domain/market-data/interval.ts'
import { fundingPayment } from '../../../domain/prices/funding-payment.ts'
import type { FundingIndex, Steps } from '../../../domain/units.ts'
import { tableOf } from '../read-table.ts'
import { RowChanges, type ShardEntry } from '../row-change.ts'
import { eventTransactionId } from './ledger-transactions.ts'

export type FundingIndexRow = Selectable<ReadFundingIndexesTable>
export type FundingPosition = Selectable<ReadFundingPositionsTable>
export type FundingSpan = Selectable<ReadFundingSpansTable>

export const FUNDING_INDEXES = tableOf<FundingIndexRow>({
  table: 'read.funding_indexes',
  key: ['market_id', 'number'],
  columns: {
    market_id: 'integer',
    number: 'bigint',
    funding_index: 'numeric',
    previous_index: 'numeric',
    action_id: 'bigint',
    tx_hash: 'text',
    log_index: 'integer',
    block: 'bigint',
    at: 'bigint',
  },
})

export const FUNDING_POSITIONS = tableOf<FundingPosition>({
  table: 'read.funding_positions',
  key: ['user_id', 'market_id'],
  columns: {
    user_id: 'bigint',
    market_id: 'integer',
    size: 'bigint',
    from_index: 'numeric',
    from_number: 'bigint',
  },
})

export const FUNDING_SPANS = tableOf<FundingSpan>({
  table: 'read.funding_spans',
  key: ['id'],
  columns: {
    id: 'text',
    user_id: 'bigint',
    market_id: 'integer',
    size: 'bigint',
    from_index: 'numeric',
    from_number: 'bigint',
    to_number: 'bigint',
    has_updates: 'boolean',
    payment: 'numeric',
    tx_hash: 'text',
    log_index: 'integer',
    block: 'bigint',
    at: 'bigint',
  },
})

/** Not shared: a market's rows are projected by one projector at a time. */
export const OPEN_INTEREST = tableOf<Selectable<ReadOpenInterestTable>>({
  table: 'read.open_interest',
  key: ['market_id'],
  columns: { market_id: 'integer', steps: 'bigint' },
})

type OpenInterestChange = Selectable<ReadOpenInterestChangesTable>

export const OPEN_INTEREST_CHANGES = tableOf<OpenInterestChange>({
  table: 'read.open_interest_changes',
  key: ['market_id', 'span', 'start'],
  columns: { market_id: 'integer', span: 'bigint', start: 'bigint', steps: 'bigint' },
})

/** The changes of one market at every stored length, from changes by time. */
export const openInterestChanges = (
  market_id: number,
  moves: ReadonlyMap<number, number>,
): OpenInterestChange[] =>
  SPANS.flatMap((span) => {
    const sums = new Map<number, number>()
    for (const [at, steps] of moves) {
      const start = spanStart(span, at)
      sums.set(start, (sums.get(start) ?? 0) + steps)
    }
    return [...sums].map(([start, steps]) => ({ market_id, span, start, steps }))
  })

/** Rows of one market before a chunk. */
export interface LoadedFunding {
  /** The newest updates, newest last: one more than the chunk rolls back, or all. */
  readonly indexes: readonly FundingIndexRow[]
  /** Positions of the accounts that the chunk touches, by user. */
  readonly positions: Map<string, FundingPosition>
  /** Spans that end with an event that the chunk rolls back, by id. */
  readonly spans: Map<string, FundingSpan>
}

/** Keys that a chunk reads before it changes them. */
export interface TouchedFunding {
  readonly updates: boolean
  readonly rolledBackUpdates: number
  readonly users: ReadonlySet<number>
  readonly rolledBackSpans: readonly string[]
}

type TouchRow = PartSettled | PositionsMoved
/** The end of a market pays every open position, as an update does. */
type UpdateRow = FundingUpdatedRow | MarketEndedRow

/** An adjustment changes no size, so that no payment depends on when it happens. */
const isTouch = (row: JournalRow): row is TouchRow =>
  row.kind === 'part_settled' || (row.kind === 'positions_moved' && !isAdjustment(row))
const isUpdate = (row: JournalRow): row is UpdateRow =>
  row.kind === 'funding_updated' || row.kind === 'market_ended'

/**
 * The id of a payment: market, action and account. It sorts by action within a market and an account. What is no action, and an old row
 * without its action, has the id of its event.
 */
function paymentId(marketId: number, row: TouchRow, userId: number): string {
  if (row.action_id === undefined) return eventTransactionId(row, userId)
  return `${marketId}-${String(row.action_id).padStart(12, '0')}-${userId}`
}

export function touchedFunding(marketId: number, entries: readonly ShardEntry[]): TouchedFunding {
  const rows = entries.map(({ row }) => row)
  const touches = rows.filter(isTouch)
  const updates = rows.filter(isUpdate)
  return {
    updates: updates.length > 0,
    rolledBackUpdates: updates.filter(({ rollback }) => rollback).length,
    users: new Set(touches.flatMap(({ positions }) => positions.map(({ user_id }) => user_id))),
    rolledBackSpans: touches
      .filter(({ rollback }) => rollback)
      .flatMap((row) => row.positions.map(({ user_id }) => paymentId(marketId, row, user_id))),
  }
}

/** The funding rows of one market, as each journal row leaves them. */
export class FundingChanges {
  readonly #marketId: number
  readonly #indexes: FundingIndexRow[]
  readonly #positions: RowChanges<FundingPosition>
  readonly #spans: RowChanges<FundingSpan>
  /** Updates up to this number are as they were before the chunk. */
  #unchanged: number
  #hasRemoved = false
  /** Changes of the long steps, by the time of the row; a rollback has the time of what it undoes. */
  readonly moves = new Map<number, number>()

  constructor(marketId: number, { indexes, positions, spans }: LoadedFunding) {
    this.#marketId = marketId
    this.#indexes = [...indexes]
    this.#positions = new RowChanges(positions)
    this.#spans = new RowChanges(spans)
    this.#unchanged = this.#number
  }

  apply(row: JournalRow): void {
    if (isUpdate(row)) {
      if (row.rollback) this.#removeUpdate(row)
      else this.#addUpdate(row)
    } else if (isTouch(row)) {
      for (const { user_id, size_delta } of row.positions) {
        const before = this.#longSteps(user_id)
        if (row.rollback) this.#rollBackTouch(row, user_id, size_delta)
        else this.#touch(row, user_id, size_delta)
        this.moves.set(row.at, (this.moves.get(row.at) ?? 0) + this.#longSteps(user_id) - before)
      }
    }
  }

  get indexes(): readonly FundingIndexRow[] {
    return this.#indexes.filter(({ number }) => number > this.#unchanged)
  }

  /** Updates above this number were rolled back; null if none were. */
  get lastNumber(): number | null {
    return this.#hasRemoved ? this.#number : null
  }

  get positions(): readonly FundingPosition[] {
    return this.#positions.changed()
  }

  get spans(): readonly FundingSpan[] {
    return this.#spans.changed()
  }

  get removedSpans(): readonly string[] {
    return this.#spans.removed()
  }

  get #number(): number {
    return this.#indexes.at(-1)?.number ?? 0
  }

  /** Index at the last update. */
  get #index(): bigint {
    return this.#indexes.at(-1)?.funding_index ?? 0n
  }

  /** An update that does not move the index pays nothing and gets no number. */
  #addUpdate({ action_id, tx_hash, log_index, block, at, ...row }: UpdateRow): void {
    const funding_index = BigInt(row.funding_index)
    if (funding_index === this.#index) return
    this.#indexes.push({
      ...{ market_id: this.#marketId, number: this.#number + 1, funding_index },
      ...{ previous_index: this.#index, action_id, tx_hash, log_index, block, at },
    })
  }

  #removeUpdate({ action_id }: UpdateRow): void {
    if (this.#indexes.at(-1)?.action_id !== action_id) return
    this.#indexes.pop()
    this.#unchanged = Math.min(this.#unchanged, this.#number)
    this.#hasRemoved = true
  }

  /** Rows from before indexes were recorded count at the index of the last update: no job of their time set a rate. */
  #indexOf(row: TouchRow): bigint {
    return row.funding_index === undefined ? this.#index : BigInt(row.funding_index)
  }

  #longSteps(userId: number): number {
    return Math.max(this.#position(userId).size, 0)
  }

  #position(userId: number): FundingPosition {
    const flat = { size: 0, from_index: 0n, from_number: 0 }
    return this.#positions.get(String(userId)) ?? { user_id: userId, market_id: this.#marketId, ...flat }
  }

  /** A flat position has no index, so that it is the same whatever it was before. */
  #setPosition(userId: number, size: number, index: bigint, number: number): void {
    const place = size === 0 ? { from_index: 0n, from_number: 0 } : { from_index: index, from_number: number }
    const position = { user_id: userId, market_id: this.#marketId, size, ...place }
    this.#positions.apply({ key: String(userId), apply: () => position })
  }

  #touch(row: TouchRow, userId: number, sizeDelta: number): void {
    const before = this.#position(userId)
    const index = this.#indexOf(row)
    if (before.size !== 0 && (index !== before.from_index || this.#number !== before.from_number)) {
      const span = this.#spanUntil(row, before, index)
      this.#spans.apply({ key: span.id, apply: () => span })
    }
    this.#setPosition(userId, before.size + sizeDelta, index, this.#number)
  }

  #spanUntil(row: TouchRow, before: FundingPosition, index: bigint): FundingSpan {
    const { user_id, market_id, size, from_index, from_number } = before
    const { tx_hash, log_index, block, at } = row
    const updates = this.#number - from_number
    const paid = updates === 0 ? from_index : this.#index
    return {
      ...{ id: paymentId(market_id, row, user_id), user_id, market_id, size, from_index, from_number },
      to_number: this.#number,
      // Only the first update may find the index where the stretch began.
      has_updates: updates > 1 || (updates === 1 && this.#index !== from_index),
      payment: fundingPayment(size as Steps, paid as FundingIndex, index as FundingIndex),
      ...{ tx_hash, log_index, block, at },
    }
  }

  /** Without a span, funding had not moved since the position's last change: its index and number were those of now. */
  #rollBackTouch(row: TouchRow, userId: number, sizeDelta: number): void {
    const id = paymentId(this.#marketId, row, userId)
    const span = this.#spans.get(id)
    const size = this.#position(userId).size - sizeDelta
    if (span === undefined) {
      this.#setPosition(userId, size, this.#indexOf(row), this.#number)
      return
    }
    invariant(span.size === size, `the span ${id} has the size before the change that is rolled back`)
    this.#spans.apply({ key: id, apply: () => undefined })
    this.#setPosition(userId, size, span.from_index, span.from_number)
  }
}
