/**
 * Runs one auction round: price and shares over a fixed set of orders. A batch that exceeds a limit needs several rounds.
 */

import type { Seq, Steps, Ticks } from '../units.ts'
import { proRata } from './allocation.ts'
import { clearingPrice, type PriceResult } from './clearing-price.ts'
import type { Share } from './pairing.ts'
import type { Participant } from './participants.ts'
import type { PositionCapacity } from './position-capacity.ts'
import { addEntries, type BatchEntries, type BatchEntry, eligibleAt, type RiskTerms } from './tranches.ts'

export interface RoundInput {
  readonly terms: RiskTerms
  readonly participants: readonly Participant[]
  /** The tick nearest the oracle price. */
  readonly oracle: Ticks
  /** Participating orders; null for all. */
  readonly restrictedTo: ReadonlySet<Seq> | null
  /** Whether an order may open steps on the side that reduces its account's position. */
  readonly mayFlip: boolean
}

export interface Round {
  readonly entries: BatchEntries
  /** Null if no orders cross. */
  readonly result: RoundResult | null
}

/** A share with the capacity of its account's position. */
export interface PlannedShare extends Share {
  readonly capacity: PositionCapacity
}

export interface RoundResult extends PriceResult {
  readonly volume: Steps
  /**
   * The orders of either side with a share above 0. The orders of one account are adjacent and in tranche
   * order.
   */
  readonly buys: readonly PlannedShare[]
  readonly sells: readonly PlannedShare[]
}

export function runRound({ terms, participants, oracle, restrictedTo, mayFlip }: RoundInput): Round {
  const entries: BatchEntries = { buys: [], sells: [] }
  for (const { capacity, orders } of participants) {
    const participating =
      restrictedTo === null ? orders : orders.filter(({ order }) => restrictedTo.has(order.seq))
    addEntries(entries, capacity, participating, mayFlip)
  }
  const answer = clearingPrice({ ...entries, band: terms.band, oracle })
  if (answer === null) return { entries, result: null }

  const { price, demand, supply } = answer
  const volume = Math.min(demand, supply) as Steps
  const buys = sharesOf(entries.buys, price, volume)
  const sells = sharesOf(entries.sells, price, volume)
  return { entries, result: { ...answer, volume, buys, sells } }
}

function sharesOf(entries: readonly BatchEntry[], price: Ticks, volume: Steps): readonly PlannedShare[] {
  const eligible: PlannedShare[] = []
  let claimed = 0
  for (const entry of entries) {
    const steps = eligibleAt(entry, price)
    if (steps === 0) continue
    claimed += steps
    eligible.push({ order: entry.bounded.order, capacity: entry.bounded.capacity, steps })
  }
  if (claimed === volume) return eligible

  const allocated = proRata(eligible, volume)
  const shares: PlannedShare[] = []
  for (let i = 0; i < eligible.length; i++) {
    const { order, capacity } = eligible[i] as PlannedShare
    const steps = allocated[i] as Steps
    if (steps > 0) shares.push({ order, capacity, steps })
  }
  return shares
}
