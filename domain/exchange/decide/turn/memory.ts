/**
 * Memory that a market's turn passes to its next turn.
 * No row stores it: a new owner starts with `NO_MEMORY`, and its decisions are no worse.
 */
import type { ClearedBasis } from '../../../auction/action-basis.ts'
import { type Deferrals, NO_DEFERRALS } from '../../../auction/deferral.ts'
import { INITIAL_PACE, type SettlementPace } from '../../../auction/settlement-pace.ts'
import type { PriceAverages } from '../../../prices/averages.ts'
import type { Millis, Seq } from '../../../units.ts'

export interface TurnMemory {
  /** If lost, an average settlement time is assumed until the next measurement. */
  readonly pace: SettlementPace
  /** Accounts that the auction leaves out temporarily. If lost, all accounts take part again. */
  readonly deferrals: Deferrals
  /**
   * Journal head at the market's last completed auction; null if unknown.
   * The head of its last batch, stored in the state, is used then.
   */
  readonly standingSeq: Seq | null
  /**
   * Basis of the last completed auction; null if unknown: the next auction runs even if nothing has changed.
   */
  readonly cleared: ClearedBasis | null
  /** Averages including all samples since the last published mark; null: as of that mark. */
  readonly averages: PriceAverages | null
  /** Time of the last check of prices for publication; 0: a check is due. */
  readonly pricesCheckedAt: Millis
  /** Whether this owner has published prices. Its first check publishes them even if unchanged. */
  readonly hasPublished: boolean
  /** Number of the last liquidation that a step decided on; 0: the oldest comes first. */
  readonly lastLiquidation: Seq
}

export const NO_MEMORY: TurnMemory = {
  pace: INITIAL_PACE,
  deferrals: NO_DEFERRALS,
  standingSeq: null,
  cleared: null,
  averages: null,
  pricesCheckedAt: 0 as Millis,
  hasPublished: false,
  lastLiquidation: 0 as Seq,
}
