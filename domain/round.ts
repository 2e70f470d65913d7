/** One computation of price, shares and pairs over a fixed set of participants. A batch that is too large takes a few of them. */
import { proRata } from './allocation.ts'
import type { Fill, Pair, Ration } from './clearing.ts'
import { clearingPrice, type PriceAnswer } from './clearing-price.ts'
import { pairUp, type Share, type Tally, tally } from './pairing.ts'
import type { Participant } from './participants.ts'
import { type Entry, eligibleAt, entriesOf, type RiskTerms } from './tranches.ts'
import type { Quote, Seq, Steps, Ticks } from './units.ts'

export interface RoundInput {
  readonly terms: RiskTerms
  readonly participants: readonly Participant[]
  /** The orders that take part; null for all. */
  readonly only: ReadonlySet<Seq> | null
  readonly reference: Ticks
}

export interface Round {
  /** By account, within an account in tranche order. */
  readonly entries: readonly Entry[]
  /** Null where nothing meets. */
  readonly trade: Trade | null
}

export interface Trade extends PriceAnswer {
  readonly volume: Steps
  readonly ration: Ration | null
  readonly fills: readonly Fill[]
  readonly pairs: readonly Pair[]
}

export function runRound({ terms, participants, only, reference }: RoundInput): Round {
  const entries = participants.flatMap(({ standing, orders, reach }) => {
    const taking = only === null ? orders : orders.filter(({ seq }) => only.has(seq))
    return entriesOf(terms, standing, taking, reach)
  })
  const buys = entries.filter(({ order }) => order.side === 'LONG')
  const sells = entries.filter(({ order }) => order.side === 'SHORT')
  const answer = clearingPrice({ buys, sells, band: terms.band, reference })
  return {
    entries,
    trade: answer === null ? null : tradeAt(answer, { terms, participants, entries, buys, sells }),
  }
}

interface Field {
  readonly terms: RiskTerms
  readonly participants: readonly Participant[]
  readonly entries: readonly Entry[]
  readonly buys: readonly Entry[]
  readonly sells: readonly Entry[]
}

function tradeAt(answer: PriceAnswer, field: Field): Trade {
  const { price, demand, supply } = answer
  const volume = Math.min(demand, supply) as Steps
  const buys = sharesOf(field.buys, price, volume)
  const sells = sharesOf(field.sells, price, volume)
  const pairs = pairUp(field.terms.spec, price, buys, sells)
  return { ...answer, volume, ration: rationOf(answer, volume), pairs, fills: fillsOf(field, tally(pairs)) }
}

function rationOf({ demand, supply }: PriceAnswer, volume: Steps): Ration | null {
  if (demand === supply) return null
  return demand > supply
    ? { side: 'LONG', volume, eligible: demand }
    : { side: 'SHORT', volume, eligible: supply }
}

/** The orders of one side that get something. */
function sharesOf(entries: readonly Entry[], price: Ticks, volume: Steps): Share[] {
  const eligible = entries
    .map((entry) => ({ order: entry.order, steps: eligibleAt(entry, price) }))
    .filter(({ steps }) => steps > 0)
  const shares = proRata(
    eligible.map(({ order, steps }) => ({ seq: order.seq, steps })),
    volume,
  )
  return eligible
    .map(({ order }, i) => ({ order, steps: shares[i] as Steps }))
    .filter(({ steps }) => steps > 0)
}

/** Fills reduce the position in tranche order until it is flat. Since self-trades are gone an account trades on one side only. */
function fillsOf({ participants, entries }: Field, tallies: ReadonlyMap<Seq, Tally>): Fill[] {
  const sizes = new Map(participants.map(({ standing }) => [standing.account, standing]))
  const left = new Map<number, number>()
  return entries.flatMap(({ order }) => {
    const share = tallies.get(order.seq)
    if (share === undefined) return []
    const standing = sizes.get(order.account)
    const closes = standing?.reducingSide === order.side
    const capacity = left.get(order.account) ?? Math.abs(standing?.position.size ?? 0)
    const fill = share.taker + share.maker
    const reducing = closes ? Math.min(fill, capacity) : 0
    if (closes) left.set(order.account, capacity - reducing)
    return [fillOf(order, share, reducing as Steps)]
  })
}

function fillOf(order: Entry['order'], { taker, maker, fee }: Tally, reducing: Steps): Fill {
  const fill = (taker + maker) as Steps
  return {
    seq: order.seq,
    account: order.account,
    side: order.side,
    fill,
    reducing,
    opening: (fill - reducing) as Steps,
    taker,
    maker,
    fee: fee as Quote,
    left: (order.remaining - fill) as Steps,
  }
}
