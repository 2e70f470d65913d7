/** Cuts a cleared batch into transactions that the chain takes: each balanced and within its limits. */

import type { Quote, Seq, Steps, UserId } from '../units.ts'
import type { Fill, Pair } from './clearing.ts'
import { type Tally, tally } from './pairing.ts'

/** Limits of one settlement transaction. */
export const MAX_PART_ORDERS = 200
export const MAX_PART_SLOTS = 400

/** Of the market itself: its clock and its reference, which its first part finds empty. */
export const MARKET_SLOTS = 2

/** Where a part is cut, at most one buy and one sell go on in the next: each holds a slot for its filled quantity meanwhile. */
const CUT_SLOTS = 2

/** What a part takes before its first order. */
const FIXED_SLOTS = MARKET_SLOTS + CUT_SLOTS

/** A share of a cleared batch whose buys equal its sells. */
export interface Part {
  readonly pairs: readonly Pair[]
  /** What these pairs add up to: by account, within an account in tranche order. An order that goes on later has more `left`. */
  readonly fills: readonly Fill[]
  /** Storage slots it can take at most. */
  readonly newSlots: number
}

/** What splitting needs of a cleared batch. */
export interface Splittable {
  readonly pairs: readonly Pair[]
  readonly fills: readonly Fill[]
}

/**
 * The parts in settlement order. Their pairs in a row are the batch's pairs, cut between pairs; each part has at most
 * `PART_ORDERS` orders and `PART_SLOTS` new slots. Slots are counted as if nothing were there yet: a bitmap word per order, a
 * slot per order that stays partly filled, a position per account, and the market's own; so what the chain holds does not change
 * the parts. A balance at the bank is not counted: who had none left holds a position already.
 */
export function splitIntoParts({ pairs, fills }: Splittable): Part[] {
  const fillOf = new Map(fills.map((fill) => [fill.seq, fill]))
  const progress = new Progress(fills)
  return cut(pairs, fillOf).map(({ pairs: chunk, newSlots }) => ({
    pairs: chunk,
    fills: progress.settle(chunk),
    newSlots,
  }))
}

/** Whether a batch that leaves these orders so much fits one transaction: what `splitIntoParts` would say, without the pairs. */
export function fitsOnePart(filled: readonly Pick<Fill, 'account' | 'remaining'>[]): boolean {
  if (filled.length > MAX_PART_ORDERS) return false
  const accounts = new Set<UserId>()
  let slots = FIXED_SLOTS
  for (const { account, remaining } of filled) {
    slots += slotsOf(remaining, !accounts.has(account))
    accounts.add(account)
  }
  return slots <= MAX_PART_SLOTS
}

const slotsOf = (left: Steps, isNewAccount: boolean): number => 1 + Number(left > 0) + Number(isNewAccount)

interface Chunk {
  readonly pairs: Pair[]
  newSlots: number
}

function cut(pairs: readonly Pair[], fillOf: ReadonlyMap<Seq, Fill>): Chunk[] {
  const chunks: Chunk[] = []
  let load = new PartLoad(fillOf)
  for (const pair of pairs) {
    const current = chunks.at(-1)
    if (current !== undefined && load.fits(pair)) {
      load.add(pair)
      current.pairs.push(pair)
      current.newSlots = load.slots
    } else {
      load = new PartLoad(fillOf)
      load.add(pair)
      chunks.push({ pairs: [pair], newSlots: load.slots })
    }
  }
  return chunks
}

/** Orders and slots of the part that is being filled. */
class PartLoad {
  readonly #orders = new Set<Seq>()
  readonly #accounts = new Set<UserId>()
  readonly #fillOf: ReadonlyMap<Seq, Fill>
  slots = FIXED_SLOTS

  constructor(fillOf: ReadonlyMap<Seq, Fill>) {
    this.#fillOf = fillOf
  }

  fits({ buySeq, sellSeq }: Pair): boolean {
    const orders = Number(!this.#orders.has(buySeq)) + Number(!this.#orders.has(sellSeq))
    return (
      this.#orders.size + orders <= MAX_PART_ORDERS &&
      this.slots + this.#slotsOf(buySeq) + this.#slotsOf(sellSeq) <= MAX_PART_SLOTS
    )
  }

  add({ buySeq, sellSeq }: Pair): void {
    for (const seq of [buySeq, sellSeq]) {
      this.slots += this.#slotsOf(seq)
      this.#orders.add(seq)
      this.#accounts.add(this.#fill(seq).account)
    }
  }

  #slotsOf(seq: Seq): number {
    if (this.#orders.has(seq)) return 0
    const { remaining, account } = this.#fill(seq)
    return slotsOf(remaining, !this.#accounts.has(account))
  }

  #fill(seq: Seq): Fill {
    return this.#fillOf.get(seq) as Fill
  }
}

/** How far each order has got through the parts. Its reducing share settles first. */
class Progress {
  readonly #fills: readonly Fill[]
  readonly #settled = new Map<Seq, number>()

  constructor(fills: readonly Fill[]) {
    this.#fills = fills
  }

  settle(pairs: readonly Pair[]): Fill[] {
    const tallies = tally(pairs)
    return this.#fills.flatMap((fill) => {
      const share = tallies.get(fill.seq)
      return share === undefined ? [] : [this.#share(fill, share)]
    })
  }

  #share(whole: Fill, { taker, maker, fee }: Tally): Fill {
    const before = this.#settled.get(whole.seq) ?? 0
    const steps = taker + maker
    this.#settled.set(whole.seq, before + steps)
    const reducing = Math.max(0, Math.min(steps, whole.reducing - before))
    return {
      ...whole,
      fill: steps as Steps,
      reducing: reducing as Steps,
      opening: (steps - reducing) as Steps,
      taker,
      maker,
      fee: fee as Quote,
      remaining: (whole.remaining + whole.fill - before - steps) as Steps,
    }
  }
}
