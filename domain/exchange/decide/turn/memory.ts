/** Memory that each turn of a market passes on to the next. It is in no row: a new owner starts with `NO_MEMORY`, and no decision is worse for it. */
import type { ClearedBasis } from '../../../auction/action-basis.ts'
import { type Deferrals, NO_DEFERRALS } from '../../../auction/deferral.ts'
import { INITIAL_PACE, type SettlementPace } from '../../../auction/settlement-pace.ts'
import type { PriceAverages } from '../../../prices/averages.ts'
import type { Millis, Seq } from '../../../units.ts'

export interface TurnMemory {
  /** Lost: an average settlement is assumed until it is measured again. */
  readonly pace: SettlementPace
  /** Accounts that the auction leaves out for a time. Lost: all take part again. */
  readonly deferrals: Deferrals
  /** The head of the journal in the market's last completed auction; null if unknown: then that of its last batch, in the state, counts. */
  readonly standingSeq: Seq | null
  /** Basis of the last completed auction; null if unknown: the next one runs, even if nothing has changed. */
  readonly cleared: ClearedBasis | null
  /** The averages with all samples since the last published mark; null: as that mark left them. */
  readonly averages: PriceAverages | null
  /** When prices were last checked for publication; 0: they are due. */
  readonly pricesCheckedAt: Millis
  /** Whether this owner has published prices: its first check publishes them, changed or not. */
  readonly hasPublished: boolean
  /** The number of the last liquidation on which a step decided; 0: the oldest comes first. */
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
