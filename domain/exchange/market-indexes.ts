/** Indexes that keep market turns from reading whole tables. Derived from the tables, like the books. */
import { isInFlight } from '../positions/adjustment-attempt.ts'
import { FLAT, type Position, poolShare } from '../positions/position.ts'
import { PositionScanner } from '../risk/scanner.ts'
import type { MarketId, Quote, Seq, UserId } from '../units.ts'
import type { DocumentTable } from './document-table.ts'
import type { RecordTable } from './record-table.ts'
import type { PositionRow } from './tables/accounts.ts'
import type { AttemptRow, LiquidationRow } from './tables/chain.ts'
import type { ActionRow } from './tables/markets.ts'

export const matchedOf = (row: PositionRow): Position => ({
  size: row.matchedSize,
  entryNotional: row.matchedEntryNotional,
  foldedMargin: row.matchedFoldedMargin,
  leverage: row.matchedLeverage,
})

/**
 * Matched positions of a market, with derived pool and scanner. The positions themselves stay in their table.
 */
export class MatchedPositions {
  readonly scanner = new PositionScanner()
  readonly #table: RecordTable<PositionRow>
  readonly #marketId: MarketId
  #pool = 0n

  constructor(table: RecordTable<PositionRow>, marketId: MarketId) {
    this.#table = table
    this.#marketId = marketId
  }

  /** Market pool at the bank once every unsettled fill is mined. Exact to the wei. */
  get pool(): Quote {
    return this.#pool as Quote
  }

  /** The position of the account; flat if it has none. */
  readonly of = (account: UserId): Position => {
    const row = this.#table.get(account, this.#marketId)
    return row === undefined ? FLAT : matchedOf(row)
  }

  change(account: UserId, before: Position, after: Position): void {
    this.#pool += poolShare(after) - poolShare(before)
    this.scanner.set(account, after)
  }
}

export interface MarketTables {
  readonly positions: RecordTable<PositionRow>
  readonly liquidations: DocumentTable<LiquidationRow>
  readonly attempts: DocumentTable<AttemptRow>
  readonly actions: DocumentTable<ActionRow>
}

export class MarketIndexes {
  readonly #positions: RecordTable<PositionRow>
  readonly #matched = new Map<MarketId, MatchedPositions>()
  /** Accounts in liquidation with their liquidation numbers, by number. */
  readonly #liquidating = new Map<number, Map<UserId, Seq>>()
  /** Adjustments in flight by id. */
  readonly #adjusting = new Map<number, Map<string, AttemptRow>>()
  /** Funding updates in the state, ascending by number. */
  readonly #fundingUpdates = new Map<number, ActionRow[]>()

  constructor({ positions, liquidations, attempts, actions }: MarketTables) {
    this.#positions = positions
    positions.observe((before, after) => this.#followPosition(before, after))
    liquidations.observe((before, after) => this.#followLiquidation(before, after))
    attempts.observe((before, after) => this.#followAttempt(before, after))
    actions.observe((before, after) => this.#followAction(before, after))
  }

  matched(marketId: MarketId): MatchedPositions {
    let positions = this.#matched.get(marketId)
    if (positions === undefined) {
      positions = new MatchedPositions(this.#positions, marketId)
      this.#matched.set(marketId, positions)
    }
    return positions
  }

  /** Accounts in liquidation with their liquidation numbers, by number. */
  liquidating(marketId: MarketId): ReadonlyMap<UserId, Seq> {
    return this.#liquidating.get(marketId) ?? new Map()
  }

  /** The adjustments in flight in the market, in no particular order. */
  adjusting(marketId: MarketId): Iterable<AttemptRow> {
    return this.#adjusting.get(marketId)?.values() ?? []
  }

  /** The market's newest funding update, regardless of its outcome. */
  lastFundingUpdate(marketId: MarketId): ActionRow | undefined {
    return this.#fundingUpdates.get(marketId)?.at(-1)
  }

  #followAction(before: ActionRow | undefined, after: ActionRow | undefined): void {
    const { market_id, queue_no, kind } = (after ?? before) as ActionRow
    if (kind !== 'update_funding') return
    const others = (this.#fundingUpdates.get(market_id) ?? []).filter((row) => row.queue_no !== queue_no)
    const updates = after === undefined ? others : [...others, after]
    this.#fundingUpdates.set(
      market_id,
      updates.sort((a, b) => a.queue_no - b.queue_no),
    )
  }

  #followPosition(before: PositionRow | undefined, after: PositionRow | undefined): void {
    const { userId, marketId } = (after ?? before) as PositionRow
    const [was, is] = [before, after].map((row) => (row === undefined ? FLAT : matchedOf(row)))
    if (isSame(was as Position, is as Position)) return
    this.matched(marketId).change(userId, was as Position, is as Position)
  }

  #followLiquidation(before: LiquidationRow | undefined, after: LiquidationRow | undefined): void {
    if (before?.number === after?.number) return
    const { marketId } = (after ?? before) as LiquidationRow
    const numbers = new Map(this.#liquidating.get(marketId))
    if (before !== undefined) numbers.delete(before.account)
    if (after !== undefined) numbers.set(after.account, after.number)
    this.#liquidating.set(marketId, new Map([...numbers].sort(([, a], [, b]) => a - b)))
  }

  #followAttempt(before: AttemptRow | undefined, after: AttemptRow | undefined): void {
    const { market_id, adjustment_id } = (after ?? before) as AttemptRow
    const attempts = this.#adjusting.get(market_id) ?? new Map<string, AttemptRow>()
    if (after !== undefined && isInFlight(after.status)) {
      attempts.set(adjustment_id, after)
      this.#adjusting.set(market_id, attempts)
    } else attempts.delete(adjustment_id)
  }
}

const isSame = (a: Position, b: Position): boolean =>
  a.size === b.size &&
  a.entryNotional === b.entryNotional &&
  a.foldedMargin === b.foldedMargin &&
  a.leverage === b.leverage
