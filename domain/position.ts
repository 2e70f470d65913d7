/** One account's isolated position in one market, as the contract keeps it in one slot. */
import type { Quote, Steps } from './units.ts'

export interface Position {
  /** Signed: long positive. */
  readonly size: Steps
  /** Price paid for the position, not negative: sum of price x quantity of what is still open. */
  readonly entryNotional: Quote
  /** Margin less funding: margin = folded + size x fundingIndex taken at any time. May be negative. */
  readonly foldedMargin: Quote
  /** Of the last opening fill or leverage change; 0 only for an account never seen in this market. */
  readonly leverage: number
}

export const FLAT: Position = {
  size: 0 as Steps,
  entryNotional: 0n as Quote,
  foldedMargin: 0n as Quote,
  leverage: 0,
}
