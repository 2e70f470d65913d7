/** One computation of price and shares over a fixed set of orders. A batch that is too large takes a few of them. */
import { proRata } from './allocation.ts'
import { clearingPrice, type PriceAnswer } from './clearing-price.ts'
import type { Share } from './pairing.ts'
import type { Participant } from './participants.ts'
import { addEntries, type Entry, eligibleAt, type RiskTerms } from './tranches.ts'
import type { Seq, Steps, Ticks } from './units.ts'

export interface RoundInput {
  readonly terms: RiskTerms
  readonly participants: readonly Participant[]
  readonly reference: Ticks
  /** The orders that take part; null for all. */
  readonly only: ReadonlySet<Seq> | null
  /** Whether an order may open on the side that reduces its account's position. */
  readonly mayFlip: boolean
}

export interface Round {
  /** An account's entries lie together, in tranche order. */
  readonly entries: readonly Entry[]
  /** Null where nothing meets. */
  readonly result: RoundResult | null
}

export interface RoundResult extends PriceAnswer {
  readonly volume: Steps
  /** The orders of either side that get something. */
  readonly buys: readonly Share[]
  readonly sells: readonly Share[]
}

export function runRound({ terms, participants, reference, only, mayFlip }: RoundInput): Round {
  const entries: Entry[] = []
  for (const { standing, orders } of participants) {
    const taking = only === null ? orders : orders.filter(({ order }) => only.has(order.seq))
    addEntries(entries, standing, taking, mayFlip)
  }
  const buys = entries.filter(({ bounded }) => bounded.order.side === 'LONG')
  const sells = entries.filter(({ bounded }) => bounded.order.side === 'SHORT')
  const answer = clearingPrice({ buys, sells, band: terms.band, reference })
  if (answer === null) return { entries, result: null }

  const { price, demand, supply } = answer
  const volume = Math.min(demand, supply) as Steps
  return {
    entries,
    result: { ...answer, volume, buys: sharesOf(buys, price, volume), sells: sharesOf(sells, price, volume) },
  }
}

function sharesOf(entries: readonly Entry[], price: Ticks, volume: Steps): Share[] {
  const eligible: Share[] = []
  for (const entry of entries) {
    const steps = eligibleAt(entry, price)
    if (steps > 0) eligible.push({ order: entry.bounded.order, steps })
  }
  const steps = proRata(eligible, volume)
  return eligible
    .map(({ order }, i) => ({ order, steps: steps[i] as Steps }))
    .filter((share) => share.steps > 0)
}
